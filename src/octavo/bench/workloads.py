"""Named workloads of random prompts, run several times in turn: for comparing engines on the same work.

Owns: the workloads and their report.   Does not own: flags (cli/bench.py), the engine.
Each workload is run once in every round, so that what disturbs the machine for a while disturbs all alike. Prompts are
new in every run: no prefix is ever cached.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from octavo.bench.samples import Generate, RandomShape, draw_random
from octavo.proto.sampling import SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Requests submitted together. Lengths in tokens."""

    name: str
    num_requests: int
    input_len: int
    output_len: int

    @property
    def num_input_tokens(self) -> int:
        return self.num_requests * self.input_len

    @property
    def num_output_tokens(self) -> int:
        return self.num_requests * self.output_len


WORKLOADS = (
    Workload(name="single_128_128", num_requests=1, input_len=128, output_len=128),
    Workload(name="single_1024_64", num_requests=1, input_len=1024, output_len=64),
    Workload(name="batch_64x256_128", num_requests=64, input_len=256, output_len=128),
    Workload(name="prefill_16x1024", num_requests=16, input_len=1024, output_len=1),
)
"""One user; one user with a long prompt; many users; prompts only."""


@dataclass(frozen=True, slots=True)
class WorkloadTimes:
    """Seconds of each run of one workload."""

    workload: Workload
    seconds: list[float] = field(default_factory=list)

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.workload.name,
            "num_requests": self.workload.num_requests,
            "input_len": self.workload.input_len,
            "output_len": self.workload.output_len,
            "seconds": self.seconds,
            "median_s": self.median_s,
            "input_tokens_per_second": self.workload.num_input_tokens / self.median_s,
            "output_tokens_per_second": self.workload.num_output_tokens / self.median_s,
        }


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """Times of all workloads, in order."""

    times: list[WorkloadTimes]

    def as_json(self) -> dict[str, object]:
        return {"engine": "Octavo", "workloads": [times.as_json() for times in self.times]}

    def __str__(self) -> str:
        lines = [f"{'workload':<20}{'median s':>10}{'in tok/s':>12}{'out tok/s':>12}"]
        for times in self.times:
            rate_in = times.workload.num_input_tokens / times.median_s
            rate_out = times.workload.num_output_tokens / times.median_s
            lines.append(f"{times.workload.name:<20}{times.median_s:>10.3f}{rate_in:>12.1f}{rate_out:>12.1f}")
        return "\n".join(lines)


def run_workloads(
    generate: Generate,
    workloads: Sequence[Workload],
    *,
    num_rounds: int,
    vocab_size: int,
    seed: int,
    now_s: Callable[[], float] = time.perf_counter,
) -> WorkloadReport:
    """Measure `generate` (LLM.generate), greedy and ignoring ends of text. A short request warms up first."""
    generate([[1] * 32], SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=8), use_tqdm=False)
    times = [WorkloadTimes(workload) for workload in workloads]
    for round_idx in range(num_rounds):
        for place, entry in enumerate(times):
            workload = entry.workload
            shape = RandomShape(input_len=workload.input_len, output_len=workload.output_len)
            draw_seed = seed + round_idx * len(times) + place
            samples = draw_random(workload.num_requests, shape, vocab_size=vocab_size, seed=draw_seed)
            params = SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=workload.output_len)
            prompts = [sample.prompt_token_ids for sample in samples]
            started_s = now_s()
            generate(prompts, params, use_tqdm=False)
            entry.seconds.append(now_s() - started_s)
    return WorkloadReport(times)
