"""What rows cost, where they are cut and which chunks wait for which: its own test program."""

from __future__ import annotations

from pathlib import Path

from fakes.native_program import assert_holds, build_program, needs_compiler


@needs_compiler
def test_chunks_are_even_and_wait_for_those_alone_whose_keys_they_read(tmp_path: Path) -> None:
    assert_holds(build_program(tmp_path, "row_chunks", ["row_chunks.cpp", "chunk_walk.cpp"]))
