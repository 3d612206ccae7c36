"""From the statistics of engines to metric families.

Pure: values in, families out. Owns: names, types and labels of what engines count, vLLM's where it has them.
Does not own: when engines are asked; what front ends count (catalogue.py).
Engines' totals begin anew when an engine is restarted, which readers of counters expect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from octavo.proto.stats import (
    LOSS_REASONS,
    PHASES,
    QUEUE_POSITION_BOUNDS,
    ROOFLINE_SHARE_BOUNDS,
    STEP_TOKENS_BOUNDS,
    EngineStats,
    Histogram,
)

_LABELS = ("model_name", "engine")


def engine_metrics(stats: Sequence[EngineStats], model_name: str) -> Iterator[Metric]:
    """Everything that engines report, one series an engine."""
    engines = [((model_name, str(item.engine_idx)), item) for item in stats]
    yield from _gauges(engines)
    yield from _counters(engines)
    yield from _histograms(engines)


_Engines = list[tuple[tuple[str, str], EngineStats]]


def _gauges(engines: _Engines) -> Iterator[Metric]:
    running = GaugeMetricFamily("vllm:num_requests_running", "Sequences that hold a place in steps.", labels=_LABELS)
    waiting = GaugeMetricFamily("vllm:num_requests_waiting", "Sequences that wait for one.", labels=_LABELS)
    by_reason = GaugeMetricFamily(
        "vllm:num_requests_waiting_by_reason", "Waiting sequences by what they wait for.", labels=(*_LABELS, "reason")
    )
    usage = GaugeMetricFamily("vllm:kv_cache_usage_perc", "Share of the KV blocks in use, 0 to 1.", labels=_LABELS)
    kept = GaugeMetricFamily(
        "octavo_grammar_cache_bytes", "Compiled grammars that are kept, estimated from above.", labels=_LABELS
    )
    for labels, stats in engines:
        scheduler = stats.scheduler
        kept.add_metric(labels, stats.grammars.num_kept_bytes)
        running.add_metric(labels, scheduler.num_running)
        waiting.add_metric(labels, scheduler.num_waiting)
        by_reason.add_metric((*labels, "capacity"), scheduler.num_waiting)
        by_reason.add_metric((*labels, "deferred"), 0)
        usage.add_metric(labels, scheduler.kv_usage)
    yield from (running, waiting, by_reason, usage, kept)


def _counters(engines: _Engines) -> Iterator[Metric]:
    def family(name: str, text: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(name, text, labels=(*_LABELS, *labels))

    plain = {
        "num_preemptions": family("vllm:num_preemptions", "Sequences that lost their place to others."),
        "prefix_queries": family("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache."),
        "prefix_hits": family("vllm:prefix_cache_hits", "Tokens found in it."),
        "num_failed_steps": family("octavo_failed_steps", "Steps that failed and were computed again."),
        "num_faults": family("octavo_request_faults", "Sequences that a fault of the engine's ended, each alone."),
    }
    lost = family("octavo_prefix_cache_lost_tokens", "Cached tokens that could not be used, by reason.", "reason")
    phases = family("octavo_engine_phase_seconds", "Time of the engine by phase of a step.", "phase")
    moved = family("octavo_step_bytes", "Bytes that steps had to move at the least.")
    multiplied = family("octavo_step_flops", "Floating-point operations that steps had to do at the least.")
    dropped = family("octavo_engine_dropped_frames", "Frames that came to the engine and were no messages.")
    needed = family("octavo_grammar_cache_queries", "Compiled grammars that requests needed.")
    found = family("octavo_grammar_cache_hits", "Those of them that were kept from before.")
    for labels, stats in engines:
        needed.add_metric(labels, stats.grammars.num_queries)
        found.add_metric(labels, stats.grammars.num_hits)
        dropped.add_metric(labels, stats.num_dropped_frames)
        for field, counter in plain.items():
            counter.add_metric(labels, getattr(stats.scheduler, field))
        for reason in LOSS_REASONS:
            lost.add_metric((*labels, reason), stats.scheduler.prefix_losses.get(reason, 0))
        for phase in PHASES:
            phases.add_metric((*labels, phase), stats.steps.phase_s.get(phase, 0.0))
        moved.add_metric(labels, stats.steps.planned_bytes)
        multiplied.add_metric(labels, stats.steps.planned_flops)
    yield from (*plain.values(), dropped, needed, found, lost, phases, moved, multiplied)


def _histograms(engines: _Engines) -> Iterator[Metric]:
    tokens = HistogramMetricFamily("vllm:iteration_tokens_total", "Tokens computed in a step.", labels=_LABELS)
    positions = HistogramMetricFamily(
        "octavo_queue_position", "Waiting sequences ahead of a new one when it came.", labels=_LABELS
    )
    shares = HistogramMetricFamily(
        "octavo_step_roofline_share", "Least possible time of a step over the time it took.", labels=_LABELS
    )
    for labels, stats in engines:
        add_histogram(tokens, labels, stats.steps.step_tokens, STEP_TOKENS_BOUNDS)
        add_histogram(positions, labels, stats.scheduler.queue_positions, QUEUE_POSITION_BOUNDS)
        if stats.steps.roofline_shares is not None:
            add_histogram(shares, labels, stats.steps.roofline_shares, ROOFLINE_SHARE_BOUNDS)
    yield from (tokens, positions, shares)


def add_histogram(
    family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram, bounds: Sequence[float]
) -> None:
    """Add one series; `histogram.counts` has one entry a bound and one for what is above the last."""
    buckets: list[tuple[str, float]] = []
    num_below = 0
    for bound, count in zip((*bounds, float("inf")), histogram.counts, strict=True):
        num_below += count
        buckets.append((floatToGoString(bound), num_below))  # type: ignore[no-untyped-call]
    family.add_metric(labels, buckets, histogram.total)


def cache_config_info(fields: Mapping[str, object], engine_idx: int) -> Metric:
    """vLLM's way to publish settings that routers read: labels of a gauge that is always 1."""
    labels = {**{name: str(value) for name, value in fields.items()}, "engine": str(engine_idx)}
    family = GaugeMetricFamily("vllm:cache_config_info", "Settings of the KV cache.", labels=tuple(labels))
    family.add_metric(tuple(labels.values()), 1)
    return family
