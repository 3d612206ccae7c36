"""Where the time of a start-up went.

Owns: named phases with their seconds.   Invariant: the phases are contiguous, so they sum to the wall time between
construction and the last `mark`; time that nobody named cannot hide.
"""

from __future__ import annotations

from octavo.base.clock import Clock


class Timeline:
    """Phases of one start-up, in order. `mark(name)` ends the running phase and names it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s = clock.now_s()
        self._phases: list[tuple[str, float]] = []

    def mark(self, name: str) -> None:
        """Everything since the previous mark was `name`."""
        now_s = self._clock.now_s()
        self._phases.append((name, now_s - self._last_s))
        self._last_s = now_s

    @property
    def phases(self) -> dict[str, float]:
        """phase -> seconds, in order; phases marked twice are added up."""
        seconds: dict[str, float] = {}
        for name, duration_s in self._phases:
            seconds[name] = seconds.get(name, 0.0) + duration_s
        return seconds

    @property
    def total_s(self) -> float:
        """Seconds from construction to the last mark: the sum of the phases."""
        return sum(duration_s for _, duration_s in self._phases)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self.phases.items())
        return f"{self.total_s:.2f} s ({parts})"
