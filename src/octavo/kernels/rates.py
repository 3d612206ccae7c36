"""What this machine and a back end's own kernels reach at best: the roof that steps are measured against.

Owns: the measurement.   Does not own: what a step costs (models/cost.py), what is made of it (obs).
Memory: all threads read memory that no cache holds. Arithmetic: many rows times a table that stays in cache, through
`logits`, the plainest matrix product of the table of ops. Source: the roofline model (Williams et al. 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from octavo.kernels.ops import FloatArray, OpTable

_NUM_READ_BYTES = 64 << 20
_WIDTH = 1024
_NUM_CACHED_ROWS = 512
_NUM_QUERIES = 128
_NUM_TRIES = 2


@dataclass(frozen=True, slots=True)
class KernelRates:
    """The best of a few tries."""

    bytes_per_s: float
    flops_per_s: float


class _Constant:
    """A weight tensor of one value, in no file."""

    name = "probe"
    storage = "float32"

    def __init__(self, *shape: int) -> None:
        self.shape: tuple[int, ...] = shape

    def read_f32(self, start: int = 0, stop: int | None = None) -> FloatArray:
        num_rows = (self.shape[0] if stop is None else stop) - start
        return np.full((num_rows, *self.shape[1:]), 0.5, np.float32)

    def drop(self) -> None:
        """Nothing to give back."""


def measure_rates(ops: OpTable, *, num_threads: int) -> KernelRates:
    """Cost: about 0.1 s and 64 MiB, given back at the end."""
    return KernelRates(bytes_per_s=_read_rate(num_threads), flops_per_s=_multiply_rate(ops))


def _read_rate(num_threads: int) -> float:
    memory = np.ones(_NUM_READ_BYTES // 4, np.float32)
    parts = np.array_split(memory, num_threads)
    with ThreadPoolExecutor(num_threads) as pool:
        seconds = [_time(lambda: list(pool.map(lambda part: np.dot(part, part), parts))) for _ in range(_NUM_TRIES)]
    return memory.nbytes / min(seconds)


def _multiply_rate(ops: OpTable) -> float:
    table = ops.pack_embedding(_Constant(_NUM_CACHED_ROWS, _WIDTH))
    ones = ops.pack_vector(_Constant(_WIDTH))
    rows = np.arange(_NUM_QUERIES, dtype=np.int32)
    seconds = []
    for _ in range(_NUM_TRIES + 1):  # the first one warms up
        x, _ = ops.rms_norm(ops.embedding(np.zeros(_NUM_QUERIES, np.int32), table), ones, 1e-6)
        seconds.append(_time(partial(ops.logits, x, rows, table)))
    return 2.0 * _NUM_QUERIES * _NUM_CACHED_ROWS * _WIDTH / min(seconds)


def _time(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
