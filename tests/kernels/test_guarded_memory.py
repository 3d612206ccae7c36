"""Memory that the back end cuts up by itself: AddressSanitizer sees its borders as those of other allocations."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("guarded") / "guarded_memory"
    sources = [NATIVE / "tests" / "guarded_memory.cpp", NATIVE / "host" / "memory.cpp"]
    flags = ["-std=c++20", "-g", "-fsanitize=address", f"-I{NATIVE / 'include'}"]
    subprocess.run([COMPILER, *flags, *sources, "-o", target], check=True)
    return target


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([program, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_what_is_in_use_may_be_touched(program: Path) -> None:
    found = run(program)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    "touched",
    [
        "behind a buffer",
        "behind a large buffer",
        "behind a smaller buffer in the place of another",
        "behind a slice",
        "before a slice",
        "behind a region",
        "a buffer that was returned",
    ],
)
def test_what_is_not_in_use_is_reported(program: Path, touched: str) -> None:
    found = run(program, touched)
    assert found.returncode != 0
    assert "AddressSanitizer: use-after-poison" in found.stderr
