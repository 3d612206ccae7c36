"""Who goes first, who yields, and whether a waiting request is ready: the strategies of scheduling.

Owns: the order of requests, the choice of a victim, the protocol of readiness.
Does not own: whether something fits (`core/kv`), how many tokens a request gets (`planning.py`).

An order is a key that is set once. That is enough for priorities that age: the effective priority at time t is
priority - (t - arrival) / ageing, and in comparing two requests t cancels out, so the one with the smaller
arrival + ageing x priority is ahead at all times. An important request is ahead of those that arrived up to
`ageing_s` before it for each level between them, and behind those that have waited longer: nobody starves.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from octavo.base.errors import ConfigError, ConfigProblem, OctavoError
from octavo.core.request import Request
from octavo.proto.failure import Failure

DEFAULT_AGEING_S: Final = 60.0
"""Waiting so long weighs as much as one level of priority."""


class SchedulingPolicy(Protocol):
    """Order and victim. Implementations change nothing and may raise: that ends the request they were asked about."""

    def order_key(self, request: Request) -> tuple[float, ...]:
        """Smaller goes first. Asked once, when the request arrives; must be unique among requests."""
        ...

    def victim_idx(self, candidates: Sequence[Request]) -> int:
        """Which of `candidates` (not empty, in order, all behind the one that needs blocks) is preempted."""
        ...


class FcfsPolicy:
    """First come, first served; the last to come yields first."""

    def order_key(self, request: Request) -> tuple[float, ...]:
        return (request.ordinal,)

    def victim_idx(self, candidates: Sequence[Request]) -> int:
        return len(candidates) - 1


class PriorityPolicy:
    """Small priority values first, then first come; waiting makes a request more important (see the module)."""

    def __init__(self, ageing_s: float = DEFAULT_AGEING_S) -> None:
        self._ageing_s = ageing_s

    def order_key(self, request: Request) -> tuple[float, ...]:
        client = request.client
        if self._ageing_s == float("inf"):
            return (client.priority, client.arrival_s, request.ordinal)
        return (client.arrival_s + self._ageing_s * client.priority, request.ordinal)

    def victim_idx(self, candidates: Sequence[Request]) -> int:
        return len(candidates) - 1


def make_policy(name: str, *, ageing_s: float = DEFAULT_AGEING_S) -> SchedulingPolicy:
    """The policy of a `--scheduling-policy` value. Raises ConfigError for any other name."""
    if name == "fcfs":
        return FcfsPolicy()
    if name == "priority":
        return PriorityPolicy(ageing_s)
    raise ConfigError([ConfigProblem("scheduling_policy", name, "must be fcfs or priority")])


class Readiness(Enum):
    """Whether a waiting request could start, memory and budget aside."""

    READY = 0
    NOT_YET = 1


class NeverReadyError(OctavoError):
    """What a request waits for will not come: `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.text)


class ReadinessCheck(Protocol):
    """Asked of each waiting request before it is admitted: grammar compiled, KV arrived, adapter loaded.

    A request that is NOT_YET waits and holds nobody up. NeverReadyError ends that request with its failure, any
    other exception as a fault of ours. Being asked may be what starts the preparation.
    """

    def __call__(self, request: Request) -> Readiness: ...


def always_ready(request: Request) -> Readiness:
    """The check where nothing has to be prepared."""
    return Readiness.READY
