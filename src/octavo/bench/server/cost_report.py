"""What serving adds, as text and as JSON.

Owns: medians over rounds, labels, keys.   Does not own: the measurement (serving_cost.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass

from octavo.bench.server.serving_cost import CostResult, OfflineRun, Pairs, ServedRun

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Medians over the rounds of one concurrency. Shares are of rounds: served against offline of the same one."""

    offline_tokens_per_s: float
    served_tokens_per_s: float
    served_share: float
    share_without_client: float
    """As if the load generator needed no CPU."""
    share_without_client_and_front_end: float
    added_ms_per_token: float
    """Time per token behind the first, served less offline."""
    front_end_us_per_token: float
    client_us_per_token: float
    median_ttft_ms: float


def summarize_pairs(pairs: Pairs) -> PairSummary:
    """Medians over rounds."""

    def median(value: Callable[[ServedRun, OfflineRun], float]) -> float:
        return statistics.median(
            value(served, offline) for served, offline in zip(pairs.served, pairs.offline, strict=True)
        )

    def share(cpu_s: Callable[[ServedRun], float]) -> float:
        return median(lambda served, offline: served.tokens_per_s(without_cpu_s=cpu_s(served)) / offline.tokens_per_s)

    return PairSummary(
        offline_tokens_per_s=median(lambda _, offline: offline.tokens_per_s),
        served_tokens_per_s=median(lambda served, _: served.tokens_per_s()),
        served_share=share(lambda _: 0.0),
        share_without_client=share(lambda served: served.client_cpu_s),
        share_without_client_and_front_end=share(lambda served: served.client_cpu_s + served.front_end_cpu_s),
        added_ms_per_token=median(lambda served, offline: 1e3 * (served.token_s - offline.token_s)),
        front_end_us_per_token=median(lambda served, _: served.front_end_us_per_token),
        client_us_per_token=median(lambda served, _: 1e6 * served.client_cpu_s / served.num_tokens),
        median_ttft_ms=median(lambda served, _: 1e3 * served.ttft_s),
    )


class CostReport:
    """The whole of one measurement."""

    def __init__(self, result: CostResult) -> None:
        self.result = result
        self.summaries = {concurrency: summarize_pairs(pairs) for concurrency, pairs in result.pairs.items()}

    def as_json(self) -> dict[str, object]:
        """Medians, and every run they were made of."""
        result = self.result
        return {
            "ready_s": result.ready_s,
            "first_token_s": result.first_token_s,
            "idle_s": result.idle_s,
            "idle_cpu_ms": 1e3 * result.idle_cpu_s,
            "front_end_rss_mib": result.usage.front_end.rss_bytes / MIB,
            "front_end_peak_rss_mib": result.usage.front_end.peak_rss_bytes / MIB,
            "engine_rss_mib": result.usage.engine.rss_bytes / MIB,
            "concurrency": {str(number): asdict(summary) for number, summary in self.summaries.items()},
            "runs": {str(number): asdict(pairs) for number, pairs in result.pairs.items()},
        }

    def __str__(self) -> str:
        result, usage = self.result, self.result.usage
        lines = [
            f"{'From command to ready:':<52}{result.ready_s:>10.2f} s",
            f"{'From command to first token:':<52}{result.first_token_s:>10.2f} s",
            f"{f'CPU of all processes over {result.idle_s:g} s without work:':<52}{1e3 * result.idle_cpu_s:>10.1f} ms",
            f"{'Memory of the front end, at the end:':<52}{usage.front_end.rss_bytes / MIB:>10.1f} MiB",
            f"{'Memory of the front end, at most:':<52}{usage.front_end.peak_rss_bytes / MIB:>10.1f} MiB",
        ]
        for number, summary in self.summaries.items():
            share, without = 100 * summary.served_share, 100 * summary.share_without_client
            bare = 100 * summary.share_without_client_and_front_end
            lines += [
                f"{f' {number} streams ' if number > 1 else ' 1 stream ':-^67}",
                f"{'Offline:':<52}{summary.offline_tokens_per_s:>10.1f} tok/s",
                f"{'Served:':<52}{summary.served_tokens_per_s:>10.1f} tok/s",
                f"{'Served, of offline:':<52}{share:>10.1f} %",
                f"{'  less CPU of the load generator:':<52}{without:>10.1f} %",
                f"{'  less CPU of load generator and front end:':<52}{bare:>10.1f} %",
                f"{'Added time per token behind the first:':<52}{summary.added_ms_per_token:>10.3f} ms",
                f"{'Front end, CPU per token:':<52}{summary.front_end_us_per_token:>10.1f} us",
                f"{'Load generator, CPU per token:':<52}{summary.client_us_per_token:>10.1f} us",
                f"{'Median TTFT:':<52}{summary.median_ttft_ms:>10.1f} ms",
            ]
        return "\n".join(lines)
