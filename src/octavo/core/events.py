"""What the scheduler reports about itself, as values. Totals count from the start and never go back."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo.core.kv.prefix import HitLosses
from octavo.proto.output import FinishReason
from octavo.proto.stats import LOSS_REASONS, QUEUE_POSITION_BOUNDS, Histogram, LossReason, SchedulerStats


class HistogramCounter:
    """A Histogram while it is counted."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def read(self) -> Histogram:
        """The counts so far."""
        return Histogram(counts=list(self._counts), total=self._total)


@dataclass(slots=True)
class Tally:
    """The totals while they are counted; fields as in SchedulerStats."""

    num_steps: int = 0
    num_failed_steps: int = 0
    num_scheduled_tokens: int = 0
    num_prompt_tokens: int = 0
    num_preemptions: int = 0
    num_faults: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    num_finished: Counter[FinishReason] = field(default_factory=Counter)
    prefix_losses: Counter[LossReason] = field(default_factory=Counter)
    queue_positions: HistogramCounter = field(default_factory=lambda: HistogramCounter(QUEUE_POSITION_BOUNDS))

    def note_look_up(self, num_tokens: int, num_hit_tokens: int, losses: HitLosses) -> None:
        """A request of num_tokens looked into the prefix cache."""
        self.prefix_queries += num_tokens
        self.prefix_hits += num_hit_tokens
        for reason in LOSS_REASONS:
            num_lost = getattr(losses, reason)
            if num_lost:
                self.prefix_losses[reason] += num_lost

    def stats(self, *, num_running: int, num_waiting: int, num_steps_in_flight: int, kv_usage: float) -> SchedulerStats:
        """The totals as they are now, beside the gauges given."""
        return SchedulerStats(
            num_running=num_running,
            num_waiting=num_waiting,
            num_steps_in_flight=num_steps_in_flight,
            kv_usage=kv_usage,
            num_steps=self.num_steps,
            num_failed_steps=self.num_failed_steps,
            num_scheduled_tokens=self.num_scheduled_tokens,
            num_prompt_tokens=self.num_prompt_tokens,
            num_preemptions=self.num_preemptions,
            num_faults=self.num_faults,
            prefix_queries=self.prefix_queries,
            prefix_hits=self.prefix_hits,
            num_finished=dict(self.num_finished),
            prefix_losses=dict(self.prefix_losses),
            queue_positions=self.queue_positions.read(),
        )
