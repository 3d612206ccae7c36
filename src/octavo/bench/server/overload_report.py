"""What an overload did to a server, as text and as JSON.

Owns: labels, keys, what is compared with what.   Does not own: the measurement (overload.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from octavo.bench.server.overload import OverloadResult, Phase
from octavo.bench.server.usage import Usage

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory of one kind of process over the overload."""

    start_mib: float
    peak_mib: float
    late_mib_per_min: float
    """Slope over the second half: what goes on growing."""


def growth_of(usages: Sequence[Usage], seconds: float) -> Growth:
    """From readings at even intervals; zeros for none."""
    if not usages:
        return Growth(0.0, 0.0, 0.0)
    mib = [usage.rss_bytes / MIB for usage in usages]
    late = mib[len(mib) // 2 :]
    interval_min = seconds / len(mib) / 60.0
    slope = 0.0
    if len(late) > 1 and interval_min > 0:
        slope = statistics.linear_regression([index * interval_min for index in range(len(late))], late).slope
    return Growth(mib[0], max(mib), slope)


class OverloadReport:
    """The whole of one measurement."""

    def __init__(self, result: OverloadResult) -> None:
        self.result = result
        peak, overload = result.peak, result.overload
        self.goodput_share = overload.good_tokens_per_s / peak.good_tokens_per_s if peak.good_tokens_per_s else 0.0
        """Output tokens per second of good answers, overload against peak."""
        self.front_end = growth_of(overload.front_end, overload.seconds)
        self.engine = growth_of(overload.engine, overload.seconds)

    def as_json(self) -> dict[str, object]:
        """All numbers; memory readings in MiB."""
        result = self.result
        return {
            "offered_per_s": result.offered_per_s,
            "goodput_share": self.goodput_share,
            "peak": _phase_json(result.peak),
            "overload": _phase_json(result.overload),
            "front_end_memory": asdict(self.front_end),
            "engine_memory": asdict(self.engine),
            "probe_ttft_s_before": result.probes_before_s,
            "probe_ttft_s_after": result.probes_after_s,
        }

    def __str__(self) -> str:
        result, peak, overload = self.result, self.result.peak, self.result.overload
        front_end, engine = self.front_end, self.engine
        before_ms = 1e3 * statistics.median(result.probes_before_s)
        lines = [
            _line("Peak, answers:", peak.completed_per_s, "/s"),
            _line("Peak, output of good answers:", peak.good_tokens_per_s, "tok/s"),
            _line("Overload, offered:", result.offered_per_s, "/s"),
            _line("Overload, answers:", overload.completed_per_s, "/s"),
            _line("Overload, output of good answers:", overload.good_tokens_per_s, "tok/s"),
            _line("Goodput, of peak:", 100 * self.goodput_share, "%"),
            _line("Sent:", overload.num_sent, ""),
            _line("  answered:", overload.num_completed, ""),
            _line("  refused (429, 503):", overload.num_refused, ""),
            _line("  refused with Retry-After:", overload.num_refused_with_retry_after, ""),
            _line("  failed otherwise:", overload.num_failed, ""),
            _line("  open when the clients went away:", overload.num_open_at_end, ""),
            _line("Median TTFT of answers:", 1e3 * overload.median_ttft_s, "ms"),
            _line("Median time to a refusal:", 1e3 * overload.median_refusal_s, "ms"),
            _line(
                "Front end, memory at first / at most:",
                self.front_end.start_mib,
                f"/ {self.front_end.peak_mib:.1f} MiB",
            ),
            _line("Engine, memory at first / at most:", engine.start_mib, f"/ {engine.peak_mib:.1f} MiB"),
            _line("Front end, growth in the second half:", front_end.late_mib_per_min, "MiB/min"),
            _line("Engine, growth in the second half:", engine.late_mib_per_min, "MiB/min"),
            _line("TTFT of a single request before:", before_ms, "ms"),
            _line("TTFT of the first one after:", 1e3 * result.probes_after_s[0], "ms"),
            _line("TTFT of the last one after:", 1e3 * result.probes_after_s[-1], "ms"),
            _line("Load generator, of one core:", 100 * overload.client_cpu_share, "%"),
        ]
        if overload.first_failure:
            lines.append(f"First failure: {overload.first_failure}")
        return "\n".join(lines)


def _line(label: str, value: float, unit: str) -> str:
    shown = f"{value:>12,}" if isinstance(value, int) else f"{value:>12,.1f}"
    return f"{label:<46}{shown} {unit}".rstrip()


def _phase_json(phase: Phase) -> dict[str, object]:
    found = asdict(phase)
    for name in ("front_end", "engine"):
        found[name] = [usage["rss_bytes"] / MIB for usage in found[name]]
    return found
