"""Telling a stalled engine from a busy one. Pure: observations in, a verdict out.

Progress is a finished step, not a message: an engine that answers pings while its step never ends is stalled, and an
engine whose long prompt gives no tokens yet is not. While there is no work there is nothing to finish.
Does not own: clocks, pings, what is done about a stall.
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """What the observations say."""

    FINE = "fine"
    SILENT = "silent"
    """It has not answered for a while."""
    STALLED = "stalled"
    """Work waits and no step has finished for the whole timeout."""


class StallWatch:
    """Observes one engine. Times are seconds on any monotonic clock."""

    def __init__(self, stall_timeout_s: float, *, silence_s: float) -> None:
        self.stall_timeout_s = stall_timeout_s
        self.silence_s = min(silence_s, stall_timeout_s / 2)
        self._num_steps: int | None = None
        self._last_progress_s = 0.0
        self._last_message_s = 0.0

    def restart(self, now_s: float) -> None:
        """Begin to measure: work has come to an idle engine, an engine has come up, or nobody was watching."""
        self._last_progress_s = self._last_message_s = now_s

    def hear(self, num_steps: int, now_s: float) -> None:
        """A message came that says how many steps were finished."""
        self._last_message_s = now_s
        if num_steps != self._num_steps:
            self._num_steps = num_steps
            self._last_progress_s = now_s

    def judge(self, now_s: float) -> Verdict:
        """The verdict of an engine that has work and is pinged at least every `silence_s / 2`."""
        if now_s - self._last_progress_s >= self.stall_timeout_s:
            return Verdict.STALLED
        if now_s - self._last_message_s >= self.silence_s:
            return Verdict.SILENT
        return Verdict.FINE

    def stalled_for_s(self, now_s: float) -> float:
        """Seconds since the last progress."""
        return now_s - self._last_progress_s
