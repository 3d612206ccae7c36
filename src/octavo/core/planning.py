"""One planning round: who computes how many tokens in the next step. Pure: it decides on a KvPlan and changes nothing.

Owns: the decisions of one step. Does not own: applying them (`scheduler.py`), their wire form (`planner.py`).

There is one rule, whatever a request is doing: computed tokens catch up with known tokens and with those that steps in
flight are certain to sample. Running requests go first, then waiting ones, both in the policy's order.

Reservation, and why the first request can always finish:
1. A request is taken in only if it fits into an empty pool at its greatest length (`KvManager.check_fits`).
2. A running request that lacks blocks takes them from those behind it (the policy chooses which), never from one
   ahead. A victim's blocks are there at once, because the executor runs plans in order. One with nobody left behind
   it keeps what it has and waits. So the first never waits: everybody else's blocks, and with 1 those suffice.
3. A waiting request is admitted only if all its known tokens fit beside what is promised: the known tokens that running
   requests have not computed yet, and one block for each running request to grow into. With nobody running nothing is
   promised, and by 1 it fits. While a running request lacks blocks nobody is admitted.
4. Where a waiting request does not fit, at most `max_bypass` others are admitted past it until it is; then nobody is,
   and as those running end (each has a greatest length) it becomes the first. Requests that are not ready are passed
   freely, for what they wait for is not memory; but at most MAX_UNREADY of them, for looking at them takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

from octavo.base.errors import InvariantError
from octavo.core.budget import Budgets, SchedulerLimits
from octavo.core.kv.plan import KvPlan
from octavo.core.kv.prefix import HitLosses
from octavo.core.policy import Readiness, ReadinessCheck, SchedulingPolicy
from octavo.core.queues import RequestQueue
from octavo.core.request import Frame, Request

MAX_UNREADY: Final = 256
"""Waiting requests that are not ready and are looked past in one round."""

NewBlocks = tuple[tuple[int, int, list[int]], ...]


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One request's share of the step."""

    request: Request
    frame: Frame
    new_blocks: NewBlocks
    """(group, first logical block, block ids) for its row's block tables."""
    num_hit_tokens: int = -1
    """Tokens found in the prefix cache, for a request admitted in this step; -1 for one that was running."""
    losses: HitLosses | None = None
    """Cached tokens that it could not use; None where it did not look."""

    @property
    def is_admission(self) -> bool:
        return self.num_hit_tokens >= 0


class _Outcome(Enum):
    """What came of asking one waiting request."""

    ADMITTED = 0
    NOT_READY = 1
    NO_ROOM = 2


class PlanningRound:
    """Decisions of one step, collected in lists that the scheduler then commits.

    An exception while deciding about one request puts that request, and nobody else, on `faults`.
    """

    def __init__(
        self,
        kv: KvPlan,
        step_id: int,
        limits: SchedulerLimits,
        policy: SchedulingPolicy,
        budgets: Budgets,
        *,
        peak_blocks: Callable[[int], int],
    ) -> None:
        self.scheduled: list[Decision] = []
        self.victims: list[Request] = []
        self.passed: list[Request] = []
        """A waiting request once for each admission past it."""
        self.faults: list[tuple[Request, Exception]] = []
        self._kv = kv
        self._step_id = step_id
        self._limits = limits
        self._policy = policy
        self._budgets = budgets
        self._peak_blocks = peak_blocks
        """Blocks a sequence of so many tokens holds at its peak."""
        self._chunk = limits.long_prefill_token_threshold if limits.enable_chunked_prefill else 0
        self._is_short = False
        """A running request lacks blocks."""
        self._num_promised = 0
        """Blocks that running requests still need for their known tokens."""
        self._num_holders = 0
        """Requests that hold blocks."""

    def decide(self, running: RequestQueue, waiting: RequestQueue, is_ready: ReadinessCheck) -> None:
        """Fill the lists: running requests first, then waiting ones."""
        if len(running) + len(waiting) == 1:
            self._chunk = 0
        self._decide_running(running)
        if not self._is_short and not self.victims:
            self._decide_waiting(waiting, is_ready)

    # Running requests.

    def _decide_running(self, running: RequestQueue) -> None:
        order = list(running.in_order)
        self._num_holders = len(order)
        idx = 0
        while idx < len(order) and self._budgets.tokens > 0:
            request = order[idx]
            idx += 1
            try:
                self._advance(request, order, idx)
            except Exception as error:
                self._fault(request, error)

    def _advance(self, request: Request, order: list[Request], behind: int) -> None:
        """Give a running request its next tokens, with blocks taken from `order[behind:]` where they are lacking."""
        start, certain = request.span()
        if certain >= request.max_total_tokens:
            return
        num_tokens = certain - start
        if num_tokens != 1:
            num_tokens = self._share_of(num_tokens)
        end = start + num_tokens
        while True:
            reservation = self._kv.try_reserve(
                request.seq, request.token_ids, computed=start, end=end, step_id=self._step_id
            )
            if reservation is not None:
                break
            if behind == len(order):
                self._is_short = True
                return
            victim = order.pop(behind + self._policy.victim_idx(order[behind:]))
            self._give_back(victim)
            self.victims.append(victim)
        frame = Frame(self._step_id, request.epoch, start, num_tokens, 0, end == certain)
        self.scheduled.append(Decision(request, frame, reservation.new_blocks))
        self._budgets.tokens -= num_tokens
        if end < certain:
            self._num_promised += self._peak_blocks(certain) - self._peak_blocks(end)

    # Waiting requests.

    def _decide_waiting(self, waiting: RequestQueue, is_ready: ReadinessCheck) -> None:
        skipped: list[Request] = []
        may_pass = self._limits.max_bypass
        num_unready = 0
        for request in waiting.in_order:
            if self._budgets.tokens <= 0 or self._budgets.sequences <= 0:
                return
            try:
                outcome = self._admit(request, is_ready)
            except Exception as error:
                self._fault(request, error)
                continue
            if outcome is _Outcome.ADMITTED:
                self.passed += skipped
                may_pass -= bool(skipped)
            elif outcome is _Outcome.NOT_READY:
                num_unready += 1
                if num_unready >= MAX_UNREADY:
                    return
            elif outcome is _Outcome.NO_ROOM:
                skipped.append(request)
                may_pass = min(may_pass, self._limits.max_bypass - request.num_bypassed)
            if skipped and (may_pass <= 0 or len(skipped) > self._limits.max_bypass):
                return

    def _admit(self, request: Request, is_ready: ReadinessCheck) -> _Outcome:
        """Start a waiting request if it is ready and all of its known tokens fit beside what is promised."""
        if is_ready(request) is not Readiness.READY:
            return _Outcome.NOT_READY
        if request.frames and request.is_draining:
            return _Outcome.NO_ROOM
        num_kept = self._num_promised + self._num_holders
        if self._kv.num_free_blocks <= num_kept:  # needs one at least; spares the look-up of long prompts
            return _Outcome.NO_ROOM
        num_known = request.num_tokens
        hit = None
        if request.may_read_prefix_cache:
            hit = self._kv.find_prefix(request.seq, request.token_ids, num_known - 1)
        start = hit.num_tokens if hit is not None else 0
        num_tokens = self._share_of(num_known - start)
        end = start + num_tokens
        if end < num_known and not self._limits.enable_chunked_prefill:
            return _Outcome.NO_ROOM
        num_later = self._peak_blocks(num_known) - self._peak_blocks(end) if end < num_known else 0
        reservation = self._kv.try_reserve(
            request.seq,
            request.token_ids,
            computed=start,
            end=end,
            hit=hit,
            step_id=self._step_id,
            keep_free=num_kept + num_later,
        )
        if reservation is None:
            return _Outcome.NO_ROOM
        frame = Frame(self._step_id, request.epoch, start, num_tokens, 0, end == num_known)
        losses = hit.losses if hit is not None else None
        self.scheduled.append(Decision(request, frame, reservation.new_blocks, start, losses))
        self._budgets.tokens -= num_tokens
        self._budgets.sequences -= 1
        self._num_promised += num_later
        self._num_holders += 1
        return _Outcome.ADMITTED

    # Both.

    def _share_of(self, num_wanted: int) -> int:
        """How many of the tokens a request wants it gets in this step."""
        if self._chunk and num_wanted > self._chunk:
            num_wanted = self._chunk
        return min(num_wanted, self._budgets.tokens)

    def _fault(self, request: Request, error: Exception) -> None:
        self._give_back(request)
        self.faults.append((request, error))

    def _give_back(self, request: Request) -> None:
        """Free a request's blocks in this plan. It has no decision yet, so nobody can have built on it."""
        if self._kv.free(request.seq):
            raise InvariantError(f"{request.request_id}: freed in the step in which others share its new blocks")
