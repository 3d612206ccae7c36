"""What a run amounts to: rates, goodput, peaks, and the distributions of latencies.

Owns: the arithmetic, with the definitions of vLLM's benchmark.   Does not own: labels and keys (report.py).
Failed requests count as failed and in nothing else. Pure: records in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.serve.record import RequestRecord

GOODPUT_METRICS = ("ttft", "tpot", "e2el")


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values of one metric, in seconds; empty where nothing was measured."""

    values_s: np.ndarray

    @property
    def mean_ms(self) -> float:
        return self._of(np.mean)

    @property
    def median_ms(self) -> float:
        return self._of(np.median)

    @property
    def std_ms(self) -> float:
        """Of the values themselves: the population's."""
        return self._of(np.std)

    def percentile_ms(self, percentage: float) -> float:
        """Interpolated between values."""
        return self._of(lambda values: np.percentile(values, percentage))

    def _of(self, statistic: Callable[[np.ndarray], float]) -> float:
        return 1e3 * float(statistic(self.values_s)) if len(self.values_s) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeMetrics:
    """Totals and distributions of one run."""

    duration_s: float
    num_completed: int
    num_failed: int
    num_input_tokens: int
    num_output_tokens: int
    num_good: int
    """Requests within all limits of the goodput."""
    peak_output_tokens_per_s: float
    peak_concurrent_requests: int
    output_lens: list[int]
    """Per record; 0 for the failed."""
    distributions: Mapping[str, Distribution]
    """By metric: ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue."""

    def per_s(self, count: float) -> float:
        """A count as a rate over the run."""
        return count / self.duration_s if self.duration_s > 0 else 0.0


def parse_goodput(pairs: Sequence[str]) -> dict[str, float]:
    """["ttft:200", "tpot:50"], in ms -> limits in seconds. Raises ConfigError."""
    limits_s: dict[str, float] = {}
    for pair in pairs:
        name, _, value = pair.partition(":")
        try:
            limit_ms = float(value)
        except ValueError:
            limit_ms = math.nan
        if name not in GOODPUT_METRICS or not limit_ms >= 0:
            remedy = f"must be METRIC:MILLISECONDS, with a metric of {', '.join(GOODPUT_METRICS)}"
            raise ConfigError([ConfigProblem("--goodput", pair, remedy)])
        limits_s[name] = limit_ms / 1e3
    return limits_s


def summarize(
    records: Sequence[RequestRecord],
    *,
    duration_s: float,
    goodput_limits_s: Mapping[str, float],
    count_tokens: Callable[[RequestRecord], int],
) -> ServeMetrics:
    """All numbers of a run. `count_tokens` counts an answer's tokens when the server did not."""
    done = [record for record in records if record.is_success]
    num_output = [_num_output(record, count_tokens) for record in done]
    tpots_s = [record.tpot_s(count) for record, count in zip(done, num_output, strict=True)]
    lens = iter(num_output)
    return ServeMetrics(
        duration_s=duration_s,
        num_completed=len(done),
        num_failed=len(records) - len(done),
        num_input_tokens=sum(record.num_prompt_tokens for record in done),
        num_output_tokens=sum(num_output),
        num_good=sum(_is_good(record, tpot_s, goodput_limits_s) for record, tpot_s in zip(done, tpots_s, strict=True)),
        peak_output_tokens_per_s=_peak_tokens_per_s(done, num_output),
        peak_concurrent_requests=_peak_concurrent(done),
        output_lens=[next(lens) if record.is_success else 0 for record in records],
        distributions={
            "ttft": _distribution([record.ttft_s for record in done]),
            "tpot": _distribution([tpot_s for tpot_s in tpots_s if tpot_s is not None]),
            "itl": _distribution([itl_s for record in done for itl_s in record.itls_s]),
            "e2el": _distribution([record.latency_s for record in done]),
            "client_queue_time": _distribution([record.queue_s for record in done]),
            "e2el_including_client_queue": _distribution([record.queue_s + record.latency_s for record in done]),
        },
    )


def _num_output(record: RequestRecord, count_tokens: Callable[[RequestRecord], int]) -> int:
    return count_tokens(record) if record.num_output_tokens is None else record.num_output_tokens


def _is_good(record: RequestRecord, tpot_s: float | None, limits_s: Mapping[str, float]) -> bool:
    found_s = {"ttft": record.ttft_s, "tpot": tpot_s or 0.0, "e2el": record.latency_s}
    return bool(limits_s) and all(found_s[name] <= limit_s for name, limit_s in limits_s.items())


def _distribution(values_s: Sequence[float]) -> Distribution:
    return Distribution(np.array(values_s, dtype=np.float64))


def _peak_tokens_per_s(done: Sequence[RequestRecord], num_output: Sequence[int]) -> float:
    """Most output tokens of any whole second, from the first request on.

    An answer's tokens are spread evenly over its chunks: where each chunk is a token, this is vLLM's count.
    """
    if not done:
        return 0.0
    first_s = min(record.start_s for record in done)
    tokens = np.zeros(math.floor(max(record.end_s for record in done) - first_s) + 1)
    for record, count in zip(done, num_output, strict=True):
        times_s = record.start_s - first_s + np.cumsum([record.ttft_s, *record.itls_s])
        places = np.minimum(times_s.astype(np.int64), len(tokens) - 1)
        np.add.at(tokens, places, count / len(places))
    return float(tokens.max())


def _peak_concurrent(done: Sequence[RequestRecord]) -> int:
    """Most requests open at the same moment. (vLLM counts all that were open at some time of a whole second.)"""
    changes = [(record.start_s, 1) for record in done] + [(record.end_s, -1) for record in done]
    # At equal times an end comes before a start.
    return int(np.cumsum([change for _, change in sorted(changes)], dtype=np.int64).max(initial=0))
