"""Requests that go back to the waiting and compute again: a preemption, a failed row, failed steps, a reset.

Owns: whose KV is void after a failure, and that nothing of it is kept.
Does not own: when a step or a row has failed, ends of requests (`scheduler.py`), which blocks a failed row taints (the
KV manager).

    what happened    blocks are void                    what is in flight for them
    preemption       given away by planning             is still delivered: its tokens are right
    failed row       those of all who share its blocks  is made again
    failed step      those of all steps in flight       is gone with the epoch
    reset            those of all that run              is made again
"""

from __future__ import annotations

from collections.abc import Sequence

from octavo.core.events import Tally
from octavo.core.in_flight import StepInFlight
from octavo.core.kv.manager import KvManager
from octavo.core.request import Request
from octavo.core.roster import Roster
from octavo.core.state import RequestStatus

MAX_FAILED_STEPS = 2
"""A request among so many failed steps in a row is not tried again."""


class Rollback:
    """Of the requests of one scheduler."""

    def __init__(self, kv: KvManager, roster: Roster, tally: Tally) -> None:
        self._kv = kv
        self._roster = roster
        self._tally = tally

    def preempt(self, request: Request) -> None:
        """Planning has given its blocks away."""
        self._to_waiting(request, drop=False)

    def retract(self, failed: Request, step_id: int) -> None:
        """A row failed, and its blocks may hold anything: whoever shares what it was to fill computes again."""
        tainted = self._kv.retract(failed.seq, step_id)
        for request in list(self._roster.running):
            if request.seq in tainted and request is not failed:
                self._recompute(request)
        self._drop_samples_of_waiting(but=failed)

    def void(self, steps: Sequence[StepInFlight], failed_step_id: int) -> list[Request]:
        """All these steps, oldest first, bring nothing. Returns the requests that have failed too often by now."""
        self._roster.rows.tell_all_again()
        if steps:
            self._kv.void_step(steps[0].step_id)
        affected = dict.fromkeys(decision.request for step in steps for decision in step.decisions)
        suspects = {d.request for step in steps if step.step_id == failed_step_id for d in step.decisions}
        given_up = []
        for request in affected:
            if request.is_finished:
                continue
            request.frames.clear()
            self._recompute(request)
            request.num_failed_steps += request in suspects
            if request.num_failed_steps >= MAX_FAILED_STEPS:
                given_up.append(request)
        return given_up

    def recompute_all(self) -> None:
        """Running requests give up their blocks; nothing in flight is used any more."""
        for request in list(self._roster.running):
            self._recompute(request)
        self._drop_samples_of_waiting()

    def _recompute(self, request: Request) -> None:
        if request.status is RequestStatus.RUNNING:
            self._kv.free(request.seq)
            self._to_waiting(request, drop=True)

    def _to_waiting(self, request: Request, *, drop: bool) -> None:
        """The blocks are free by now. drop: what is in flight for it is made again."""
        self._roster.preempt(request, drop=drop)
        self._tally.num_preemptions += 1

    def _drop_samples_of_waiting(self, *, but: Request | None = None) -> None:
        """Preempted requests may have read blocks they no longer hold: what is in flight for them is made again."""
        for request in self._roster.waiting:
            if request.frames and request is not but:
                request.roll_back(drop=True)
