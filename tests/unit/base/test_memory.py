from pathlib import Path

import pytest

from octavo.base.memory import return_freed_memory


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
