"""The walk of chunks through stages: its own test program, once plain and once under ThreadSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("flags", [[], ["-fsanitize=thread"]], ids=["plain", "tsan"])
def test_stages_run_in_order_see_what_they_need_and_survive_exceptions(tmp_path: Path, flags: list[str]) -> None:
    program = tmp_path / "chunk_walk"
    sources = [NATIVE / "tests" / "chunk_walk.cpp", NATIVE / "host" / "chunk_walk.cpp"]
    command = [COMPILER, "-std=c++20", "-O1", "-g", "-pthread", *flags, f"-I{NATIVE / 'include'}", *sources]
    subprocess.run([*command, "-o", program], check=True)
    found = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (0, "")
