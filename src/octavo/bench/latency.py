"""Latency of one batch, from submission to the last token, again and again.

Owns: the measurement and its report, with vLLM's JSON keys.   Does not own: flags (cli/bench.py), the engine.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from octavo.base.errors import ValidationError
from octavo.bench.samples import Generate, RandomShape, draw_random
from octavo.proto.sampling import SamplingParams

PERCENTAGES = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """What is run. Lengths in tokens. Raises ValidationError for what cannot be."""

    input_len: int = 32
    output_len: int = 128
    batch_size: int = 8
    n: int = 1
    num_iters_warmup: int = 10
    num_iters: int = 30
    detokenize: bool = True

    def __post_init__(self) -> None:
        for name, least in (("input_len", 1), ("output_len", 1), ("batch_size", 1), ("n", 1), ("num_iters_warmup", 0)):
            value = getattr(self, name)
            if value < least:
                flag = "--" + name.replace("_", "-")
                raise ValidationError(f"{flag}={value}: must be at least {least}", parameter=name, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyReport:
    """Seconds of each iteration."""

    latencies: list[float]

    @property
    def avg_latency(self) -> float:
        return statistics.fmean(self.latencies)

    @property
    def percentiles(self) -> dict[int, float]:
        """percentage -> seconds, interpolated between iterations."""
        return {percentage: float(np.percentile(self.latencies, percentage)) for percentage in PERCENTAGES}

    def as_json(self) -> dict[str, object]:
        """vLLM's keys."""
        return {
            "avg_latency": self.avg_latency,
            "latencies": self.latencies,
            "percentiles": {str(percentage): value for percentage, value in self.percentiles.items()},
        }

    def __str__(self) -> str:
        lines = [f"Avg latency: {self.avg_latency} seconds"]
        lines += [
            f"{percentage}% percentile latency: {value} seconds" for percentage, value in self.percentiles.items()
        ]
        return "\n".join(lines)


def run_latency(generate: Generate, options: LatencyOptions, *, vocab_size: int, seed: int) -> LatencyReport:
    """Measure `generate` (LLM.generate) on random prompts; the same ones each time."""
    shape = RandomShape(input_len=options.input_len, output_len=options.output_len)
    samples = draw_random(options.batch_size, shape, vocab_size=vocab_size, seed=seed)
    prompts = [sample.prompt_token_ids for sample in samples]
    params = SamplingParams(
        n=options.n,
        temperature=1.0,
        top_p=1.0,
        ignore_eos=True,
        max_tokens=options.output_len,
        detokenize=options.detokenize,
    )
    latencies = []
    for _ in range(options.num_iters_warmup + options.num_iters):
        started_s = time.perf_counter()
        generate(prompts, params, use_tqdm=False)
        latencies.append(time.perf_counter() - started_s)
    return LatencyReport(latencies=latencies[options.num_iters_warmup :])
