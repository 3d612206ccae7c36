"""Timers that go off when a test says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class FakeTimer:
    at_s: float
    callback: object
    owner: FakeTimers

    def cancel(self):
        if self in self.owner.pending:
            self.owner.pending.remove(self)


class FakeTimers:
    """What an event loop has of time."""

    def __init__(self):
        self.now_s = 0.0
        self.pending = []

    def time(self):
        return self.now_s

    def call_later(self, delay, callback):
        timer = FakeTimer(self.now_s + delay, callback, self)
        self.pending.append(timer)
        return timer

    def advance(self, seconds):
        """Time passes, and each timer goes off when it is due."""
        end_s = self.now_s + seconds
        while due := [timer for timer in self.pending if timer.at_s <= end_s]:
            timer = min(due, key=lambda one: one.at_s)
            self.now_s = max(self.now_s, timer.at_s)
            timer.cancel()
            timer.callback()
        self.now_s = end_s

    def sleep_through(self, seconds):
        """Time passes while the process does not run; what was due goes off late."""
        self.now_s += seconds
        self.advance(0.0)
