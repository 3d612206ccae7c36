"""The states of a request, and which may follow which.

Owns: the enum and the transition table. Does not own: the requests (`request.py`) nor the queues that a state implies.

    WAITING ──► RUNNING ──► FINISHED_*          WAITING and PREEMPTED requests hold neither row nor blocks,
       │          │ ▲            ▲              RUNNING ones hold one row each; a finished one holds nothing
       │          ▼ │            │              and never changes again.
       │       PREEMPTED ────────┤
       └─────────────────────────┘
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from octavo.base.errors import InvariantError
from octavo.proto.output import FinishReason


class RequestStatus(IntEnum):
    """Where a request stands. Everything from FINISHED_STOPPED on is an end."""

    WAITING = 0
    RUNNING = 1
    PREEMPTED = 2
    FINISHED_STOPPED = 3
    FINISHED_LENGTH = 4
    FINISHED_ABORTED = 5
    FINISHED_ERROR = 6
    FINISHED_REPETITION = 7

    @property
    def is_finished(self) -> bool:
        return self >= RequestStatus.FINISHED_STOPPED


_ENDS: Final = frozenset(status for status in RequestStatus if status.is_finished)

TRANSITIONS: Final[dict[RequestStatus, frozenset[RequestStatus]]] = {
    RequestStatus.WAITING: _ENDS | {RequestStatus.RUNNING},
    RequestStatus.RUNNING: _ENDS | {RequestStatus.PREEMPTED},
    RequestStatus.PREEMPTED: _ENDS | {RequestStatus.RUNNING},
    **{status: frozenset() for status in _ENDS},
}
"""The legal successors of each state. A preempted one may end without running again: its samples in flight count."""

STATUS_OF_REASON: Final[dict[FinishReason, RequestStatus]] = {
    "stop": RequestStatus.FINISHED_STOPPED,
    "length": RequestStatus.FINISHED_LENGTH,
    "abort": RequestStatus.FINISHED_ABORTED,
    "error": RequestStatus.FINISHED_ERROR,
    "repetition": RequestStatus.FINISHED_REPETITION,
}


def check_transition(old: RequestStatus, new: RequestStatus) -> None:
    """Raise InvariantError where `new` may not follow `old`."""
    if new not in TRANSITIONS[old]:
        raise InvariantError(f"a request cannot go from {old.name} to {new.name}")
