"""Throughput of many requests that are all there from the start.

Owns: the measurement and its report, with vLLM's JSON keys.   Does not own: which requests (samples.py), the engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.samples import Generate, Sample
from octavo.proto.sampling import SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputReport:
    """Totals of one run."""

    elapsed_s: float
    num_requests: int
    num_prompt_tokens: int
    num_output_tokens: int

    @property
    def num_total_tokens(self) -> int:
        return self.num_prompt_tokens + self.num_output_tokens

    def as_json(self) -> dict[str, object]:
        """vLLM's keys."""
        return {
            "elapsed_time": self.elapsed_s,
            "num_requests": self.num_requests,
            "total_num_tokens": self.num_total_tokens,
            "requests_per_second": self.num_requests / self.elapsed_s,
            "tokens_per_second": self.num_total_tokens / self.elapsed_s,
        }

    def __str__(self) -> str:
        return (
            f"Throughput: {self.num_requests / self.elapsed_s:.2f} requests/s, "
            f"{self.num_total_tokens / self.elapsed_s:.2f} total tokens/s, "
            f"{self.num_output_tokens / self.elapsed_s:.2f} output tokens/s\n"
            f"Total num prompt tokens:  {self.num_prompt_tokens}\n"
            f"Total num output tokens:  {self.num_output_tokens}"
        )


def run_throughput(
    generate: Generate, samples: Sequence[Sample], *, n: int = 1, detokenize: bool = True, use_tqdm: bool = True
) -> ThroughputReport:
    """Measure `generate` (LLM.generate) on all samples at once, ignoring ends of text. Raises ConfigError for none."""
    if not samples:
        raise ConfigError(
            [ConfigProblem("--num-prompts", 0, "the dataset gave no requests; check its path and filters")]
        )
    params = [
        SamplingParams(
            n=n, temperature=1.0, top_p=1.0, ignore_eos=True, max_tokens=s.num_output_tokens, detokenize=detokenize
        )
        for s in samples
    ]
    started_s = time.perf_counter()
    outputs = generate([sample.prompt_token_ids for sample in samples], params, use_tqdm=use_tqdm)
    elapsed_s = time.perf_counter() - started_s
    return ThroughputReport(
        elapsed_s=elapsed_s,
        num_requests=len(outputs),
        num_prompt_tokens=sum(len(output.prompt_token_ids) for output in outputs),
        num_output_tokens=sum(len(completion.token_ids) for output in outputs for completion in output.outputs),
    )
