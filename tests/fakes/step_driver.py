"""Drives a scheduler with a runner as an engine would: plans go out, results come back in order, later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from octavo.core.budget import SchedulerLimits
from octavo.core.scheduler import Scheduler
from octavo.proto.failure import Failure
from octavo.proto.output import RequestDelta
from octavo.proto.plan import StepPlan
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult


class Runner(Protocol):
    def execute(self, plan: StepPlan) -> StepResult: ...


@dataclass
class Outcome:
    """All that was reported of one request."""

    token_ids: list[int] = field(default_factory=list)
    deltas: list[RequestDelta] = field(default_factory=list)

    @property
    def end(self) -> RequestDelta | None:
        return self.deltas[-1] if self.deltas and self.deltas[-1].finish_reason is not None else None

    @property
    def finish_reason(self) -> str | None:
        return self.end.finish_reason if self.end is not None else None


@dataclass
class _Sent:
    plan: StepPlan
    result: StepResult | None = None


class StepDriver:
    """Checks on the way that budgets are kept, integrity holds, and nothing is reported after an end."""

    def __init__(self, scheduler: Scheduler, runner: Runner, limits: SchedulerLimits) -> None:
        self.scheduler = scheduler
        self.outcomes: dict[str, Outcome] = {}
        self.plans: list[StepPlan] = []
        self.now_s = 0.0
        self._runner = runner
        self._limits = limits
        self._sent: deque[_Sent] = deque()

    @property
    def num_in_flight(self) -> int:
        return len(self._sent)

    @property
    def plans_in_flight(self) -> list[StepPlan]:
        return [sent.plan for sent in self._sent]

    def add(self, request: NewRequest) -> None:
        self.scheduler.add(request)
        self.outcomes[request.request_id] = Outcome()

    def abort(self, *request_ids: str) -> None:
        self.take(self.scheduler.abort(request_ids))
        self.check()

    def plan(self) -> StepPlan | None:
        """Let the scheduler plan one step."""
        plan = self.scheduler.schedule(self.now_s)
        if plan is not None:
            assert plan.rows, "a plan without work"
            assert plan.num_scheduled_tokens <= self._limits.max_num_batched_tokens
            assert len(plan.rows) <= self._limits.max_num_seqs
            assert all(0 <= row < self._limits.max_num_seqs for row in plan.rows)
            self.plans.append(plan)
            self._sent.append(_Sent(plan))
            assert len(self._sent) <= self._limits.max_steps_in_flight
        self.take(self.scheduler.take_deltas(self.now_s))
        self.check()
        return plan

    def execute(self, num_plans: int = 1) -> None:
        """Run the oldest plans that have not run; their results wait."""
        for sent in [sent for sent in self._sent if sent.result is None][:num_plans]:
            sent.result = self._runner.execute(sent.plan)

    def collect(self) -> list[RequestDelta]:
        """Hand the oldest result to the scheduler."""
        sent = self._sent[0]
        if sent.result is None:
            self.execute()
        self._sent.popleft()
        assert sent.result is not None
        deltas = self.scheduler.update(sent.result, self.now_s)
        self.take(deltas)
        self.check()
        return deltas

    def fail(self, error: str = "planted") -> None:
        """The oldest plan could not be run; those behind it never return."""
        self.scheduler.fail_step(self._sent[0].plan, Failure("internal", error))
        self._sent.clear()
        self.take(self.scheduler.take_deltas(self.now_s))
        self.check()

    def step(self) -> None:
        """Plan as far ahead as is allowed, then collect one result."""
        while len(self._sent) < self._limits.max_steps_in_flight and self.plan() is not None:
            pass
        if self._sent:
            self.collect()
        elif self.scheduler.num_running:
            raise AssertionError("nothing in flight, requests are running, and none of them is scheduled")

    def run(self, max_steps: int = 10_000) -> int:
        """Step until nothing is left to do; the number of steps. Fails when that takes more than `max_steps`."""
        for num_steps in range(max_steps):
            if not self.scheduler.has_work and not self._sent:
                return num_steps
            self.step()
        raise AssertionError(f"not done after {max_steps} steps")

    def take(self, deltas: Iterable[RequestDelta]) -> None:
        for delta in deltas:
            outcome = self.outcomes[delta.request_id]
            assert outcome.end is None, f"{delta.request_id}: reported after its end"
            outcome.deltas.append(delta)
            outcome.token_ids += delta.token_ids

    def check(self) -> None:
        self.scheduler.check_integrity()
