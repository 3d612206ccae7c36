"""Statistics of an engine that is idle, with whatever a test says instead."""

from __future__ import annotations

from typing import Any

from octavo.proto.stats import (
    QUEUE_POSITION_BOUNDS,
    ROOFLINE_SHARE_BOUNDS,
    STEP_TOKENS_BOUNDS,
    EngineStats,
    Histogram,
    SchedulerStats,
    StepStats,
)


def empty(bounds: tuple[float, ...]) -> Histogram:
    """Nothing counted yet."""
    return Histogram(counts=[0] * (len(bounds) + 1), total=0.0)


def scheduler_stats(**fields: Any) -> SchedulerStats:
    """Fields that are not given are zero."""
    zeros: dict[str, Any] = {
        "num_running": 0,
        "num_waiting": 0,
        "num_steps_in_flight": 0,
        "kv_usage": 0.0,
        "num_steps": 0,
        "num_failed_steps": 0,
        "num_scheduled_tokens": 0,
        "num_prompt_tokens": 0,
        "num_preemptions": 0,
        "num_faults": 0,
        "prefix_queries": 0,
        "prefix_hits": 0,
        "num_finished": {},
        "prefix_losses": {},
        "queue_positions": empty(QUEUE_POSITION_BOUNDS),
    }
    return SchedulerStats(**(zeros | fields))


def engine_stats(*, engine_idx: int = 0, steps: dict[str, Any] | None = None, **scheduler: Any) -> EngineStats:
    """An engine's statistics; `steps` are fields of StepStats, the rest of SchedulerStats."""
    zeros: dict[str, Any] = {
        "num_steps": 0,
        "phase_s": {},
        "planned_bytes": 0,
        "planned_flops": 0,
        "step_tokens": empty(STEP_TOKENS_BOUNDS),
        "roofline_shares": empty(ROOFLINE_SHARE_BOUNDS),
    }
    return EngineStats(
        scheduler=scheduler_stats(**scheduler), steps=StepStats(**(zeros | (steps or {}))), engine_idx=engine_idx
    )
