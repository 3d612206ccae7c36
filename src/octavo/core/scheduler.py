"""The scheduler: which request computes how many tokens in which step.

Owns: the requests from `add` to their end, their states and rows, the steps in flight, the engine's epoch.
Does not own: the bytes of KV, token values before they are sampled, when a plan runs (the engine), time (`now_s`), the
steps that are out (in_flight.py), who computes again after a failure (rollback.py).

    schedule   decide (planning.py, pure, on an overlay of the KV state) ─► commit (cannot fail) ─► StepPlan
    update     StepResult ─► accept tokens, find ends (finish.py), publish blocks ─► RequestDeltas
    fail_step  everything in flight is void; its requests compute again

Guarantees
- A request has exactly one delta with a finish_reason, and none after it.
- An exception in planning or finishing one request ends that request alone, with reason "error"; so does a failed row
  and what it waits for and will never get.
- Up to `max_steps_in_flight` plans are out; results come back in plan order. No position is scheduled behind the
  length at which a text must end; samples behind an end that was found late are dropped.
- The request that is first in the policy's order always finishes (planning.py says why).

Single-threaded; nothing blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from octavo.base.errors import InvariantError
from octavo.core.border import check_request
from octavo.core.budget import Budgets, SchedulerLimits
from octavo.core.events import Tally
from octavo.core.finish import End, accept_prompt_logprobs, accept_tokens, find_end, make_delta, read_end
from octavo.core.in_flight import StepsInFlight
from octavo.core.kv.manager import KvManager
from octavo.core.kv.sequence import KvSequence
from octavo.core.planner import build_step_plan
from octavo.core.planning import Decision, PlanningRound
from octavo.core.policy import NeverReadyError, ReadinessCheck, SchedulingPolicy, always_ready
from octavo.core.request import Frame, Request
from octavo.core.rollback import Rollback
from octavo.core.roster import Roster
from octavo.core.state import STATUS_OF_REASON
from octavo.proto.failure import Failure, internal_failure
from octavo.proto.output import RequestDelta
from octavo.proto.plan import StepPlan
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult
from octavo.proto.stats import SchedulerStats


class Scheduler:
    """Plans steps and takes their results. See the module for guarantees."""

    def __init__(
        self,
        limits: SchedulerLimits,
        kv: KvManager,
        policy: SchedulingPolicy,
        *,
        is_ready: ReadinessCheck = always_ready,
    ) -> None:
        self._limits = limits
        self._kv = kv
        self._policy = policy
        self._is_ready = is_ready
        self._roster = Roster(limits.max_num_seqs)
        self._steps = StepsInFlight()
        self._pending_deltas: list[RequestDelta] = []
        self._next_ordinal = 0
        self._tally = Tally()
        self._peak_blocks = partial(kv.max_blocks_for, max_chunk=limits.max_num_batched_tokens)
        self._rollback = Rollback(kv, self._roster, self._tally)

    @property
    def num_running(self) -> int:
        return len(self._roster.running)

    @property
    def num_waiting(self) -> int:
        """Requests without a row, preempted ones included."""
        return len(self._roster.waiting)

    @property
    def num_steps_in_flight(self) -> int:
        return len(self._steps)

    @property
    def has_work(self) -> bool:
        """Some request has not ended, or an end has not been reported."""
        return bool(self._roster or self._pending_deltas)

    # Requests come and go.

    def add(self, request: NewRequest) -> None:
        """Take a request in. Raises ValidationError, or CapacityError where it could not run even alone.

        Output it brings along (replay) counts as output. If that output is complete already, the end is reported by
        the next `take_deltas`.
        """
        check_request(request, self._limits, is_id_taken=request.request_id in self._roster)
        state = Request(
            request,
            self._next_ordinal,
            KvSequence(salt=request.cache_salt),
            max_model_len=self._limits.max_model_len,
        )
        self._kv.check_fits(state.max_total_tokens - 1, max_chunk=self._limits.max_num_batched_tokens)
        state.order_key = self._policy.order_key(state)
        self._next_ordinal += 1
        self._roster.add(state)
        self._tally.queue_positions.observe(self._roster.waiting.position(state))
        end = find_end(state) if request.output_token_ids else None
        if end is not None:
            self._pending_deltas.append(self._end(state, end))

    def abort(self, request_ids: Sequence[str]) -> list[RequestDelta]:
        """End requests in whatever state; ids that are unknown or have ended are ignored."""
        requests = [self._roster[request_id] for request_id in request_ids if request_id in self._roster]
        return [self._end(request, End("abort")) for request in dict.fromkeys(requests)]

    def take_deltas(self, now_s: float) -> list[RequestDelta]:
        """Ends that happened outside of `update`: deadlines, faults in planning, replays that were complete."""
        self._expire(now_s)
        deltas, self._pending_deltas = self._pending_deltas, []
        return deltas

    def _expire(self, now_s: float) -> None:
        for request in self._roster.deadlines.take_expired(now_s):
            late_s = now_s - (request.client.deadline_s or 0.0)
            text = f"deadline passed {late_s:.3f} s ago, after {request.num_output_tokens} tokens"
            self._pending_deltas.append(self._fail(request, Failure("deadline", text)))

    # A step goes out.

    def schedule(self, now_s: float) -> StepPlan | None:
        """The next step, or None when there is nothing to do before a result, a request or a deadline comes."""
        self._expire(now_s)
        if len(self._steps) >= self._limits.max_steps_in_flight or not self._roster:
            return None
        kv_plan = self._kv.begin()
        budgets = Budgets(tokens=self._limits.max_num_batched_tokens, sequences=self._roster.rows.num_free)
        decided = PlanningRound(
            kv_plan, self._steps.next_step_id, self._limits, self._policy, budgets, peak_blocks=self._peak_blocks
        )
        decided.decide(self._roster.running, self._roster.waiting, self._is_ready)
        self._kv.commit(kv_plan)
        self._commit_ends_and_preemptions(decided)
        if not decided.scheduled:
            return None
        self._commit_frames(decided.scheduled, now_s)
        return self._send_out(decided.scheduled)

    def _commit_ends_and_preemptions(self, decided: PlanningRound) -> None:
        for victim in decided.victims:
            self._rollback.preempt(victim)
        for request, error in decided.faults:
            self._pending_deltas.append(self._end_by_fault(request, error))
        for request in decided.passed:
            request.num_bypassed += 1

    def _commit_frames(self, decisions: Iterable[Decision], now_s: float) -> None:
        num_tokens = 0
        for decision in decisions:
            request = decision.request
            if decision.is_admission:
                self._start(decision, now_s)
            frame = decision.frame
            request.frames.append(frame)
            num_tokens += frame.num_tokens
            if frame.start < request.num_prompt_tokens:
                self._tally.num_prompt_tokens += min(frame.end, request.num_prompt_tokens) - frame.start
        self._tally.num_scheduled_tokens += num_tokens

    def _start(self, decision: Decision, now_s: float) -> None:
        """Move an admitted request to the running, and note what the prefix cache gave it."""
        request, num_hit_tokens = decision.request, decision.num_hit_tokens
        if decision.losses is not None:
            self._tally.note_look_up(request.num_tokens, num_hit_tokens, decision.losses)
        if request.num_cached_tokens is None:
            request.num_cached_tokens = min(num_hit_tokens, request.num_prompt_tokens)
            request.scheduled_s = now_s
        self._roster.start(request, num_hit_tokens)

    def _send_out(self, decisions: list[Decision]) -> StepPlan:
        self._tally.num_steps += 1
        step_id = self._steps.send_out(decisions)
        return build_step_plan(step_id, self._steps.epoch, decisions, self._roster.rows.take_freed())

    # A step comes back.

    def update(self, result: StepResult, now_s: float) -> list[RequestDelta]:
        """Take the result of the oldest step in flight; one of a dead epoch changes nothing.

        The deltas of `take_deltas` come along. Raises InvariantError when the result is not of that step.
        """
        if result.epoch != self._steps.epoch:
            return self.take_deltas(now_s)
        deltas: list[RequestDelta] = []
        for idx, decision in enumerate(self._steps.take(result)):
            request = decision.request
            if idx in result.failed:
                self._rollback.retract(request, result.step_id)
            if request.is_finished:
                continue
            try:
                delta = self._collect(request, decision.frame, result, idx)
            except Exception as error:
                delta = self._end_by_fault(request, error)
            if delta is not None:
                deltas.append(delta)
        return deltas + self.take_deltas(now_s)

    def _collect(self, request: Request, frame: Frame, result: StepResult, idx: int) -> RequestDelta | None:
        """Take one request's share of a result: accept its tokens, publish its blocks, end it if it ends."""
        if not request.frames or request.frames.popleft() is not frame:
            raise InvariantError(f"{request.request_id}: {frame} is not its oldest frame")
        if frame.epoch < request.first_valid_epoch:
            return None
        if idx in result.failed:
            return self._fail(request, result.failed[idx])
        request.num_failed_steps = 0
        prompt_logprobs = None
        if request.client.sampling.prompt_logprobs is not None:
            prompt_logprobs = accept_prompt_logprobs(request, frame, result.prompt_logprobs.get(idx, []))
        token_ids = result.token_ids[idx]
        accepted, end = accept_tokens(request, frame, token_ids, read_end(result, idx))
        new_ids = token_ids[accepted]
        if frame.epoch == request.epoch:
            num_rejected = max(0, frame.num_drafts + 1 - len(token_ids)) if token_ids else 0
            request.tokens_computed = frame.end - num_rejected
            self._kv.publish(request.seq, request.tokens_computed, request.token_ids)
        if end is not None:
            self._let_go(request, end)
        elif not new_ids and not prompt_logprobs:
            return None
        return make_delta(
            request,
            token_ids=new_ids,
            logprobs=result.logprobs[idx][accepted] if idx in result.logprobs else [],
            prompt_logprobs=prompt_logprobs or [],
            end=end,
        )

    def fail_step(self, plan: StepPlan, error: Failure) -> None:
        """The executor could not run a plan: everything in flight is void, its requests compute again.

        A request that was in the failed step and in the one that failed before it, with no good step between, ends
        with `error`. A plan of a dead epoch changes nothing.
        """
        if plan.epoch != self._steps.epoch:
            return
        self._tally.num_failed_steps += 1
        for request in self._rollback.void(self._steps.void(), plan.step_id):
            self._pending_deltas.append(self._end(request, End("error", error=error)))

    # Ends.

    def _end_by_fault(self, request: Request, error: Exception) -> RequestDelta:
        return self._fail(request, error.failure if isinstance(error, NeverReadyError) else internal_failure(error))

    def _fail(self, request: Request, failure: Failure) -> RequestDelta:
        self._tally.num_faults += failure.kind == "internal"
        return self._end(request, End("error", error=failure))

    def _end(self, request: Request, end: End) -> RequestDelta:
        self._let_go(request, end)
        return make_delta(request, token_ids=[], logprobs=[], prompt_logprobs=[], end=end)

    def _let_go(self, request: Request, end: End) -> None:
        """End a request in whatever state; it gives back all it holds."""
        self._kv.free(request.seq)
        self._roster.end(request, STATUS_OF_REASON[end.reason])
        self._tally.num_finished[end.reason] += 1

    # The whole.

    def reset_prefix_cache(self, *, reset_running: bool = False) -> bool:
        """Forget all cached blocks. False, with the cache unchanged, while blocks are in use.

        reset_running: running requests give theirs up and compute again from the next step on; nothing that is in
        flight for them is used any more.
        """
        if reset_running:
            self._rollback.recompute_all()
        return self._kv.reset_prefix_cache()

    def stats(self) -> SchedulerStats:
        """Where things stand. Cost: constant."""
        return self._tally.stats(
            num_running=len(self._roster.running),
            num_waiting=len(self._roster.waiting),
            num_steps_in_flight=len(self._steps),
            kv_usage=1.0 - self._kv.num_free_blocks / self._kv.num_usable_blocks,
        )

    def check_integrity(self) -> None:
        """Raise InvariantError where requests, queues, rows, frames and blocks disagree. For tests; O(everything)."""
        self._kv.check_integrity()
        self._roster.check_integrity()
        if self._steps.num_live_frames() != self._roster.num_frames:
            raise InvariantError("frames of requests and of steps in flight disagree")
