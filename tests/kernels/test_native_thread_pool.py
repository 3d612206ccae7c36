"""The thread pool: its own test program, once plain and once under ThreadSanitizer, and its use from Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fakes.checkpoint import ArrayWeight
from fakes.native import draw
from fakes.native_program import assert_holds, build_program, needs_compiler

from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import LinearSegment


@needs_compiler
@pytest.mark.parametrize(("flags", "arguments"), [([], []), (["-fsanitize=thread"], ["no-fork"])])
def test_the_pool_runs_units_carries_exceptions_sleeps_and_survives_forks(
    tmp_path: Path, flags: list[str], arguments: list[str]
) -> None:
    assert_holds(build_program(tmp_path, "thread_pool", ["thread_pool.cpp"], *flags), *arguments)


def test_calls_from_several_python_threads_give_each_its_own_result() -> None:
    ops = CpuOps("float32", num_threads=2)
    packed = ops.pack_linear([LinearSegment(ArrayWeight("w", draw(200, 64)))])
    inputs = [draw(20, 64, seed=seed) for seed in range(8)]

    def multiply(x: np.ndarray) -> np.ndarray:
        return ops.array(ops.linear(ops.tensor(x), packed)).copy()

    expected = [multiply(x) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            for found, one in zip(threads.map(multiply, inputs), expected, strict=True):
                np.testing.assert_array_equal(found, one)


def test_steps_of_many_sizes_share_their_memory() -> None:
    ops = CpuOps("float32", num_threads=2)
    weight = ops.pack_vector(ArrayWeight("w", draw(64)))
    for num_rows in range(400, 1, -7):
        ops.norm_only(ops.tensor(draw(num_rows, 64)), weight, 1e-5)
    largest = 400 * 64 * 4
    assert ops.arena_bytes < 4 * largest


def test_steps_of_one_kind_ask_for_no_new_memory() -> None:
    ops = CpuOps("float32", num_threads=2)
    packed = ops.pack_linear([LinearSegment(ArrayWeight("w", draw(200, 64)))])
    x = ops.tensor(draw(20, 64))
    ops.linear(x, packed)
    held = ops.arena_bytes
    for _ in range(100):
        ops.linear(x, packed)
    assert ops.arena_bytes == held
