"""Test programs of native/tests that are made of a few files of the host, without an interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def build_program(folder: Path, name: str, host_files: Sequence[str], *flags: str) -> Path:
    """native/tests/{name}.cpp with files of native/host; returns the program."""
    assert COMPILER is not None
    program = folder / name
    sources = [NATIVE / "tests" / f"{name}.cpp", *(NATIVE / "host" / file for file in host_files)]
    command = [COMPILER, "-std=c++20", "-O1", "-g", "-pthread", *flags, f"-I{NATIVE / 'include'}", *sources]
    subprocess.run([*command, "-o", program], check=True)
    return program


def assert_holds(program: Path, *arguments: str) -> None:
    """It says nothing and ends well."""
    found = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stderr) == (0, "")
