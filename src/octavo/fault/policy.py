"""What to do about the death of an engine. Pure: numbers in, decisions out.

Owns: back-off, the crash-loop cap, and which requests are too dangerous to run again.
Does not own: noticing deaths, killing, restarting, replaying.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restart:
    """Start a successor after `delay_s`."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stay dead."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """A first death is answered at once; deaths in a row wait longer and longer, and after too many of them it ends.

    Deaths are *in a row* while no engine between them lived for `stable_after_s`.
    """

    max_deaths_in_row: int = 5
    first_delay_s: float = 0.25
    max_delay_s: float = 8.0
    stable_after_s: float = 60.0

    def is_in_row(self, lived_s: float) -> bool:
        """Whether the death of an engine that served for `lived_s` continues the row before it."""
        return lived_s < self.stable_after_s

    def decide(self, num_deaths_in_row: int) -> Restart | GiveUp:
        """What to do now that the `num_deaths_in_row`-th death in a row (from 1) has happened."""
        if num_deaths_in_row >= self.max_deaths_in_row:
            return GiveUp(
                f"the engine died {num_deaths_in_row} times in a row, never serving for {self.stable_after_s:g} s"
            )
        if num_deaths_in_row <= 1:
            return Restart(0.0)
        return Restart(min(self.max_delay_s, self.first_delay_s * 2 ** (num_deaths_in_row - 2)))


MAX_REQUEST_DEATHS = 2
"""A request that was in the engine at so many deaths in a row is not run again: it may be what kills it."""


def num_request_deaths(before: int, *, is_in_row: bool) -> int:
    """Deaths in a row a request has seen, after one more that found it in the engine."""
    return before + 1 if is_in_row else 1


def is_too_dangerous(num_deaths: int) -> bool:
    """Whether a request with so many deaths in a row must end instead of running again."""
    return num_deaths >= MAX_REQUEST_DEATHS
