"""What the scheduler reports about itself, as values. Totals count from the start and never go back."""

from __future__ import annotations

import msgspec

from octavo.proto.output import FinishReason


class SchedulerStats(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of the scheduler: gauges, then totals."""

    num_running: int
    num_waiting: int
    """Preempted requests included."""
    num_steps_in_flight: int
    kv_usage: float
    """Share of the usable blocks that are held, 0 .. 1; cached-idle blocks count as free."""
    num_steps: int
    """Steps planned."""
    num_failed_steps: int
    num_scheduled_tokens: int
    num_preemptions: int
    num_faults: int
    """Requests ended by an exception of their own planning or finishing."""
    prefix_queries: int
    """Tokens of admitted requests that looked into the prefix cache."""
    prefix_hits: int
    """Those of them that were found."""
    num_finished: dict[FinishReason, int]
