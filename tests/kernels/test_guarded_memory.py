"""Memory that the back end cuts up by itself: AddressSanitizer sees its borders as those of other allocations."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fakes.native_program import build_program, needs_compiler

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    return build_program(folder, "guarded_memory", ["memory.cpp"], "-O0", "-fsanitize=address")


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
