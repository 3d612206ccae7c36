"""What the scheduler reports about itself, as values. Totals count from the start and never go back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from octavo.proto.output import FinishReason
from octavo.proto.stats import SchedulerStats


@dataclass(slots=True)
class Tally:
    """The totals while they are counted; fields as in SchedulerStats."""

    num_steps: int = 0
    num_failed_steps: int = 0
    num_scheduled_tokens: int = 0
    num_preemptions: int = 0
    num_faults: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    num_finished: Counter[FinishReason] = field(default_factory=Counter)

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
            num_preemptions=self.num_preemptions,
            num_faults=self.num_faults,
            prefix_queries=self.prefix_queries,
            prefix_hits=self.prefix_hits,
            num_finished=dict(self.num_finished),
        )
