import subprocess
import sys
from pathlib import Path

import pytest

from octavo.base.memory import return_freed_memory, return_large_blocks_at_once


def rss_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_freed_memory_goes_back_to_the_system() -> None:
    blocks = [bytearray(b"x" * 100_000) for _ in range(500)]
    last = bytearray(b"x" * 100_000)  # above the others: the heap cannot shrink by itself
    del blocks
    before = rss_pages()
    return_freed_memory()
    assert rss_pages() <= before
    assert last


def test_other_libraries_of_c_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    return_freed_memory()
    return_large_blocks_at_once()


LARGE = """
import sys
from pathlib import Path
from octavo.base.memory import return_large_blocks_at_once

def rss_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) / 256

if sys.argv[1] == "at once":
    return_large_blocks_at_once()
first = bytearray(16 << 20)
del first
before = rss_mib()
large = [bytearray(b"x") * (8 << 20) for _ in range(4)]
above = [bytearray(100_000) for _ in range(20)]  # a heap that holds both cannot shrink by itself
del large
print(rss_mib() - before)
"""


@pytest.mark.parametrize(("how", "is_kept"), [("at once", False), ("as glibc does", True)])
def test_a_large_block_goes_back_to_the_system_when_it_is_freed(how: str, is_kept: bool) -> None:
    """In a process of its own: the bounds are of all of it."""
    output = subprocess.run([sys.executable, "-c", LARGE, how], capture_output=True, text=True, check=True).stdout
    assert (float(output) > 16.0) is is_kept
