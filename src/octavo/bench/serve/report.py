"""The result of a run for people and for scripts: vLLM's console block and JSON keys.

Owns: labels, keys, number formats.   Does not own: the numbers (metrics.py), files (result_file.py).
Scripts grep the labels and read the keys: neither may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from octavo.bench.serve.metrics import ServeMetrics
from octavo.bench.serve.record import RequestRecord
from octavo.bench.serve.speculation import SpeculationCounters

WIDTH = 50
MAX_ERRORS_SHOWN = 10
METRIC_TITLES = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
    "client_queue_time": ("Client Queue Time", "Client-side Queueing"),
    "e2el_including_client_queue": ("E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency"),
}
DETAIL_KEYS = ("input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors")
"""Lists with an entry per request or chunk: in files only with --save-detailed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What the load generator itself took during the run."""

    cpu_s: float
    num_chunks: int

    @property
    def us_per_chunk(self) -> float:
        """Microseconds of CPU per chunk, sending and all else included."""
        return 1e6 * self.cpu_s / self.num_chunks if self.num_chunks else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeReport:
    """Everything known about a finished (or interrupted) run."""

    metrics: ServeMetrics
    records: Sequence[RequestRecord]
    cost: ClientCost
    has_goodput: bool = False
    request_rate: float = math.inf
    max_concurrency: int | None = None
    num_unfinished: int = 0
    """Requests that an interrupt left without an end."""
    speculation: SpeculationCounters | None = None
    shown_metrics: Sequence[str] = ("ttft", "tpot", "itl")
    percentages: Sequence[float] = (99.0,)

    def as_json(self) -> dict[str, object]:
        """vLLM's keys, and client_* for the load generator itself."""
        metrics, records = self.metrics, self.records
        result: dict[str, object] = {
            "duration": metrics.duration_s,
            "completed": metrics.num_completed,
            "failed": metrics.num_failed,
            "total_input_tokens": metrics.num_input_tokens,
            "total_output_tokens": metrics.num_output_tokens,
            "request_throughput": metrics.per_s(metrics.num_completed),
            "request_goodput": metrics.per_s(metrics.num_good) if self.has_goodput else None,
            "output_throughput": metrics.per_s(metrics.num_output_tokens),
            "total_token_throughput": metrics.per_s(metrics.num_input_tokens + metrics.num_output_tokens),
            "input_lens": [record.num_prompt_tokens for record in records],
            "output_lens": metrics.output_lens,
            "ttfts": [record.ttft_s for record in records],
            "itls": [record.itls_s for record in records],
            "latencies": [record.latency_s for record in records],
            "start_times": [record.start_s for record in records],
            "queue_times": [record.queue_s for record in records],
            "generated_texts": [record.text for record in records],
            "errors": [record.error for record in records],
            "max_output_tokens_per_s": metrics.peak_output_tokens_per_s,
            "max_concurrent_requests": metrics.peak_concurrent_requests,
            # Of audio only; always there in vLLM's files.
            "rtfx": 0.0,
            "interrupted": self.num_unfinished > 0,
            "client_cpu_seconds": self.cost.cpu_s,
            "client_cpu_us_per_chunk": self.cost.us_per_chunk,
            "client_num_chunks": self.cost.num_chunks,
        }
        for name, distribution in metrics.distributions.items():
            result[f"mean_{name}_ms"] = distribution.mean_ms
            result[f"median_{name}_ms"] = distribution.median_ms
            result[f"std_{name}_ms"] = distribution.std_ms
            for percentage in self.percentages:
                result[f"p{percentage:g}_{name}_ms"] = distribution.percentile_ms(percentage)
        return result | self._speculation_json()

    def __str__(self) -> str:
        lines = [*self._error_lines(), f"{' Serving Benchmark Result ':=^{WIDTH}}", *self._total_lines()]
        for name, (short, title) in METRIC_TITLES.items():
            if name not in self.shown_metrics:
                continue
            distribution = self.metrics.distributions[name]
            lines.append(f"{title:-^{WIDTH}}")
            lines.append(_line(f"Mean {short} (ms):", distribution.mean_ms))
            lines.append(_line(f"Median {short} (ms):", distribution.median_ms))
            for percentage in self.percentages:
                lines.append(_line(f"P{percentage:g} {short} (ms):", distribution.percentile_ms(percentage)))
        lines += self._speculation_lines()
        lines.append(f"{'Load Generator':-^{WIDTH}}")
        lines.append(_line("Client CPU time (s):", self.cost.cpu_s))
        lines.append(_line("Client CPU per chunk (us):", self.cost.us_per_chunk))
        return "\n".join([*lines, "=" * WIDTH])

    def _total_lines(self) -> list[str]:
        metrics = self.metrics
        lines = [
            _line("Successful requests:", metrics.num_completed),
            _line("Failed requests:", metrics.num_failed),
        ]
        if self.num_unfinished:
            lines.append(_line("Interrupted requests:", self.num_unfinished))
        if self.max_concurrency is not None:
            lines.append(_line("Maximum request concurrency:", self.max_concurrency))
        if not math.isinf(self.request_rate):
            lines.append(_line("Request rate configured (RPS):", float(self.request_rate)))
        lines += [
            _line("Benchmark duration (s):", metrics.duration_s),
            _line("Total input tokens:", metrics.num_input_tokens),
            _line("Total generated tokens:", metrics.num_output_tokens),
            _line("Request throughput (req/s):", metrics.per_s(metrics.num_completed)),
        ]
        if self.has_goodput:
            lines.append(_line("Request goodput (req/s):", metrics.per_s(metrics.num_good)))
        num_tokens = metrics.num_input_tokens + metrics.num_output_tokens
        return [
            *lines,
            _line("Output token throughput (tok/s):", metrics.per_s(metrics.num_output_tokens)),
            _line("Peak output token throughput (tok/s):", metrics.peak_output_tokens_per_s),
            _line("Peak concurrent requests:", float(metrics.peak_concurrent_requests)),
            _line("Total token throughput (tok/s):", metrics.per_s(num_tokens)),
        ]

    def _error_lines(self) -> list[str]:
        errors = [record.error for record in self.records if not record.is_success]
        if not errors:
            return []
        shown = [f"Error {number}: {error}" for number, error in enumerate(errors[:MAX_ERRORS_SHOWN])]
        return [f"Errors of failed requests (at most {MAX_ERRORS_SHOWN} are shown):", *shown]

    def _speculation_json(self) -> dict[str, object]:
        found = self.speculation
        if found is None or not found.num_drafts:
            return {}
        return {
            "spec_decode_acceptance_rate": found.acceptance_rate,
            "spec_decode_acceptance_length": found.acceptance_length,
            "spec_decode_num_drafts": int(found.num_drafts),
            "spec_decode_draft_tokens": int(found.num_draft_tokens),
            "spec_decode_accepted_tokens": int(found.num_accepted_tokens),
            "spec_decode_per_position_acceptance_rates": found.rates_by_position,
        }

    def _speculation_lines(self) -> list[str]:
        found = self.speculation
        if found is None or not found.num_drafts:
            return []
        lines = [
            f"{'Speculative Decoding':-^{WIDTH}}",
            _line("Acceptance rate (%):", found.acceptance_rate),
            _line("Acceptance length:", found.acceptance_length),
            _line("Drafts:", int(found.num_drafts)),
            _line("Draft tokens:", int(found.num_draft_tokens)),
            _line("Accepted tokens:", int(found.num_accepted_tokens)),
        ]
        if found.rates_by_position:
            lines.append("Per-position acceptance (%):")
            lines += [_line(f"  Position {at}:", 100 * rate) for at, rate in enumerate(found.rates_by_position)]
        return lines


def _line(label: str, value: float) -> str:
    return f"{label:<40} {value:<10}" if isinstance(value, int) else f"{label:<40} {value:<10.2f}"
