"""The line about throughput, in the words of vLLM's CPU back end, because people search logs for it.

Owns: when a line is due and what it says.   Does not own: where it goes, the clock, what is counted.
There is no timer: the engine's loop calls `turn` after each turn it makes, and an idle engine makes none. A line is due
after `interval_s` of work, or when the work ends and the last line is as old; rates are over the time worked.
"""

from __future__ import annotations

from collections.abc import Callable

from octavo.base.clock import Clock
from octavo.proto.stats import SchedulerStats

INTERVAL_S = 10.0


class ThroughputLog:
    """What an engine's loop calls: a report, a clock, and where lines go."""

    def __init__(self, report: ThroughputReport, clock: Clock, write: Callable[[str], None]) -> None:
        self._report = report
        self._clock = clock
        self._write = write

    def turn(self, num_generated: int, *, is_busy: bool, stats: Callable[[], SchedulerStats]) -> None:
        """The loop made a turn that gave num_generated tokens; writes the line when it is due."""
        now_s = self._clock.now_s()
        if self._report.turn(now_s, num_generated, is_busy=is_busy):
            self._write(self._report.line(now_s, stats()))


class ThroughputReport:
    """Lines of one engine. Cost of a turn that writes none: under a microsecond."""

    def __init__(self, engine_idx: int = 0, interval_s: float = INTERVAL_S) -> None:
        self._engine_idx = engine_idx
        self._interval_s = interval_s
        self._last_line_s: float | None = None
        self._work_began_s: float | None = None
        self._worked_s = 0.0
        self._num_generated = 0
        self._num_prompt_tokens_before = 0
        self._num_generated_before = 0

    def turn(self, now_s: float, num_generated: int, *, is_busy: bool) -> bool:
        """The loop made a turn that gave num_generated tokens; True: a line is due, call `line`."""
        self._num_generated += num_generated
        if self._last_line_s is None:
            self._last_line_s = now_s
        if self._work_began_s is not None:
            self._worked_s += now_s - self._work_began_s
            self._work_began_s = now_s
        was_busy = self._work_began_s is not None
        self._work_began_s = now_s if is_busy else None
        if is_busy:
            return self._worked_s >= self._interval_s
        return was_busy and now_s - self._last_line_s >= self._interval_s

    def line(self, now_s: float, stats: SchedulerStats) -> str:
        """The line for what was done since the last one."""
        worked_s = self._worked_s or 1.0
        prompt_rate = (stats.num_prompt_tokens - self._num_prompt_tokens_before) / worked_s
        generation_rate = (self._num_generated - self._num_generated_before) / worked_s
        self._num_prompt_tokens_before = stats.num_prompt_tokens
        self._num_generated_before = self._num_generated
        self._worked_s = 0.0
        self._last_line_s = now_s
        parts = [
            f"Avg prompt throughput: {prompt_rate:.1f} tokens/s",
            f"Avg generation throughput: {generation_rate:.1f} tokens/s",
            f"Running: {stats.num_running} reqs",
            f"Waiting: {stats.num_waiting} reqs",
        ]
        if stats.num_preemptions:
            parts.append(f"Preemptions: {stats.num_preemptions}")
        parts.append(f"CPU KV cache usage: {100 * stats.kv_usage:.1f}%")
        if stats.prefix_queries:
            parts.append(f"Prefix cache hit rate: {100 * stats.prefix_hits / stats.prefix_queries:.1f}%")
        return f"Engine {self._engine_idx:03d}: " + ", ".join(parts)
