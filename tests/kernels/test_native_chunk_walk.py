"""The walk of chunks through stages: its own test program, once plain and once under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.native_program import assert_holds, build_program, needs_compiler


@needs_compiler
@pytest.mark.parametrize("flags", [[], ["-fsanitize=thread"]], ids=["plain", "tsan"])
def test_stages_run_in_order_see_what_they_need_and_survive_exceptions(tmp_path: Path, flags: list[str]) -> None:
    assert_holds(build_program(tmp_path, "chunk_walk", ["chunk_walk.cpp"], *flags))
