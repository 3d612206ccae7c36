"""`octavo bench kernels`: what the machine can do, and what share of it each native kernel reaches.

Owns: measuring, limits and the table.   Does not own: the cases (kernel_cases), flags and files (cli/bench.py).
A case's limit is the larger of bytes / bandwidth and operations / matrix rate, both measured in the same run; the
bandwidth is that of a working set as large as the case's own. Kernels are compared with the reference first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from octavo.base.errors import InvariantError
from octavo.bench.kernel_cases import (
    KernelCase,
    attention_cases,
    find_differences,
    linear_cases,
    row_cases,
    sample_cases,
)
from octavo.bench.kernel_decoder import decoder_cases, find_decoder_differences, make_layers
from octavo.bench.kernel_shapes import SHAPES
from octavo.kernels.cpu import CpuOps

WORKING_SETS = (256 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20, 270 << 20, 1 << 30)
_NUM_PROBES = 10
_MIN_RUNS, _MIN_SECONDS = 3, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBenchOptions:
    """What is measured. `rows`: tokens of a step; also the number of sequences that decode, and of rows that sample."""

    model: str = "smollm2-135m"
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    isa: str = "auto"
    num_threads: int | None = None
    rows: Sequence[int] = (1, 16, 64, 512)
    context: int = 512
    """Tokens in the cache of each sequence that decodes."""


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """Measured here and now."""

    bandwidth: dict[int, tuple[float, float]]
    """Working set in bytes -> bytes per second from huge pages, from pages of 4 KB."""
    flops: float
    """FLOP/s of products whose weights stream from the second cache."""
    peak_flops: float
    """FLOP/s from registers."""

    def seconds(self, num_bytes: float, num_flops: float) -> float:
        """The least that a case can take."""
        fitting = [size for size in self.bandwidth if size >= num_bytes]
        best, _ = self.bandwidth[min(fitting) if fitting else max(self.bandwidth)]
        return max(num_bytes / best, num_flops / self.flops)


@dataclass(frozen=True, slots=True)
class KernelResult:
    """One line: the best run."""

    name: str
    rows: int
    seconds: float
    num_bytes: float
    num_flops: float
    limit_seconds: float

    def __str__(self) -> str:
        rate = f"{self.num_flops / self.seconds / 1e9:9.1f}" if self.num_flops else f"{'':>9}"
        return (
            f"{self.name:<26} {self.rows:>6} {1e6 * self.seconds:11.1f} {self.num_bytes / self.seconds / 1e9:8.1f}"
            f" {rate} {self.limit_seconds / self.seconds:7.0%}"
        )


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Limits and results of one run."""

    isa: str
    num_threads: int
    options: KernelBenchOptions
    limits: MachineLimits
    results: list[KernelResult]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.options.model}, {self.options.dtype}, {self.isa}, {self.num_threads} threads", ""]
        lines += [f"{'working set':>12}  GB/s from huge pages, from pages of 4 KB"]
        for size, (huge, small) in self.limits.bandwidth.items():
            lines.append(f"{_size(size):>12}  {huge / 1e9:8.1f} {small / 1e9:8.1f}")
        lines += [f"{'matrix rate':>12}  {self.limits.flops / 1e9:8.1f} GFLOP/s, weights from the second cache"]
        lines += [f"{'':>12}  {self.limits.peak_flops / 1e9:8.1f} GFLOP/s, operands in registers", ""]
        lines.append(f"{'kernel':<26} {'rows':>6} {'time, us':>11} {'GB/s':>8} {'GFLOP/s':>9} {'limit':>7}")
        return "\n".join(lines + [str(result) for result in self.results])


def run_kernels(options: KernelBenchOptions, progress: Callable[[str], None] | None = None) -> KernelReport:
    """Check, probe, measure. Raises InvariantError when a kernel disagrees with the reference."""
    ops = CpuOps(options.dtype, num_threads=options.num_threads, isa=options.isa)
    shape = SHAPES[options.model]
    problems = [*find_differences(ops, shape), *find_decoder_differences(ops, shape)]
    if problems:
        raise InvariantError("kernels disagree with the reference: " + "; ".join(problems))
    limits = measure_limits(ops)
    results = []
    for rows, case in _cases(ops, options):
        seconds = _best_seconds(case.run)
        limit = limits.seconds(case.num_bytes, case.num_flops)
        results.append(KernelResult(case.name, rows, seconds, case.num_bytes, case.num_flops, limit))
        if progress is not None:
            progress(str(results[-1]))
    return KernelReport(ops.isa, ops.num_threads, options, limits, results)


def measure_limits(ops: CpuOps) -> MachineLimits:
    """Bandwidth by working set and the matrix rate of the level in use."""
    return MachineLimits(
        {
            size: (ops.probe_read(size, _NUM_PROBES, is_huge=True), ops.probe_read(size, _NUM_PROBES, is_huge=False))
            for size in WORKING_SETS
        },
        ops.probe_matrix(_NUM_PROBES),
        ops.probe_arithmetic(_NUM_PROBES),
    )


def _cases(ops: CpuOps, options: KernelBenchOptions) -> Iterator[tuple[int, KernelCase]]:
    shape = SHAPES[options.model]
    layers = make_layers(ops, shape, shape.num_layers, max(options.context, *options.rows))
    for rows in options.rows:
        for make in (linear_cases, row_cases):
            for case in make(ops, shape, rows):
                yield rows, case
        num_seqs, past, new = (rows, options.context - 1, 1) if rows <= 64 else (1, 0, rows)
        for case in decoder_cases(ops, shape, layers, num_seqs, past, new):
            yield rows, case
        for case in attention_cases(ops, shape, num_seqs, past, new):
            yield rows, case
        if rows <= 64:
            for case in sample_cases(ops, shape, rows):
                yield rows, case


def _best_seconds(run: Callable[[], object]) -> float:
    run()
    best, total, num_runs = float("inf"), 0.0, 0
    while num_runs < _MIN_RUNS or total < _MIN_SECONDS:
        start = time.perf_counter()
        run()
        taken = time.perf_counter() - start
        best, total, num_runs = min(best, taken), total + taken, num_runs + 1
    return best


def _size(num_bytes: int) -> str:
    return f"{num_bytes >> 20} MiB" if num_bytes >= 1 << 20 else f"{num_bytes >> 10} KiB"
