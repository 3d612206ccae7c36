"""What rows cost, where they are cut and which chunks wait for which: its own test program."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_chunks_are_even_and_wait_for_those_alone_whose_keys_they_read(tmp_path: Path) -> None:
    program = tmp_path / "row_chunks"
    sources = [
        NATIVE / "tests" / "row_chunks.cpp",
        NATIVE / "host" / "row_chunks.cpp",
        NATIVE / "host" / "chunk_walk.cpp",
    ]
    command = [COMPILER, "-std=c++20", "-O1", "-g", "-pthread", f"-I{NATIVE / 'include'}", *sources]
    subprocess.run([*command, "-o", program], check=True)
    found = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stderr) == (0, "")
