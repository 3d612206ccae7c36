"""The loop keeps its queue full, takes results in order, and survives a failed step."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from octavo.base.clock import ManualClock
from octavo.base.errors import EngineDeadError
from octavo.engine.core import EngineCore
from octavo.proto.failure import Failure
from octavo.proto.output import RequestDelta
from octavo.proto.plan import StepPlan
from octavo.proto.result import StepResult


class FakeScheduler:
    """Plans `num_plans` steps and notes what it is told."""

    def __init__(self, num_plans):
        self.num_plans = num_plans
        self.epoch = self.num_planned = 0
        self.calls = []
        self.pending = []

    def schedule(self, now_s):
        if self.num_planned == self.num_plans:
            return None
        self.num_planned += 1
        return StepPlan(
            step_id=self.num_planned - 1,
            epoch=self.epoch,
            freed_rows=[],
            new=[],
            rows=[],
            starts=[],
            num_tokens=[],
            samples=[],
            new_blocks=[],
        )

    def update(self, result, now_s):
        self.calls.append(("update", result.step_id))
        return [RequestDelta(request_id=str(result.step_id), epoch=0)]

    def fail_step(self, plan, error):
        self.calls.append(("fail", plan.step_id, error))
        self.epoch += 1
        self.pending.append(RequestDelta(request_id="failed", epoch=0, finish_reason="error"))

    def take_deltas(self, now_s):
        pending, self.pending = self.pending, []
        return pending

    @property
    def has_work(self):
        return self.num_planned < self.num_plans


class FakeExecutor:
    """Answers at once; steps in `failing` raise."""

    def __init__(self, failing=(), error=None):
        self.failing, self.error = set(failing), error or RuntimeError("broken kernel")
        self.submitted = []
        self.num_shutdowns = 0

    def submit(self, plan):
        self.submitted.append(plan.step_id)
        future = Future()
        if plan.step_id in self.failing:
            future.set_exception(self.error)
        else:
            future.set_result(StepResult(step_id=plan.step_id, epoch=plan.epoch, token_ids=[]))
        return future

    def check_health(self):
        pass

    def shutdown(self):
        self.num_shutdowns += 1


def make(num_plans, depth, **executor):
    scheduler, executor = FakeScheduler(num_plans), FakeExecutor(**executor)
    return EngineCore(scheduler, executor, ManualClock(), max_steps_in_flight=depth), scheduler, executor


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_queue_is_kept_full_and_emptied_in_order(depth):
    core, scheduler, executor = make(5, depth)
    seen = []
    while core.has_work:
        deltas = core.step()
        seen.append((len(executor.submitted), [delta.request_id for delta in deltas]))
    assert seen == [(min(5, depth + i), [str(i)]) for i in range(5)]
    assert scheduler.calls == [("update", i) for i in range(5)]


def test_an_idle_step_returns_at_once():
    core, scheduler, _ = make(0, 2)
    assert core.step() == []
    assert scheduler.calls == []


def test_a_failed_step_voids_those_behind_it_and_is_told_once():
    core, scheduler, executor = make(4, 3, failing=[0, 1])
    deltas = core.step()
    assert executor.submitted == [0, 1, 2]
    assert scheduler.calls == [("fail", 0, Failure("internal", "RuntimeError: broken kernel"))]
    assert [delta.finish_reason for delta in deltas] == ["error"]
    core.step()
    assert scheduler.calls[1:] == [("update", 3)]


def test_a_dead_executor_stops_the_engine():
    core, scheduler, _ = make(1, 1, failing=[0], error=EngineDeadError("worker 0 died"))
    with pytest.raises(EngineDeadError, match="worker 0 died"):
        core.step()
    assert scheduler.calls == []


def test_shutdown_waits_for_what_is_in_flight():
    core, _, executor = make(3, 2)
    core.step()
    core.shutdown()
    assert not core._in_flight
    assert executor.num_shutdowns == 1


class SlowExecutor(FakeExecutor):
    """Answers when told to."""

    def __init__(self):
        super().__init__()
        self.futures = []

    def submit(self, plan):
        self.submitted.append(plan.step_id)
        self.futures.append((plan, Future()))
        return self.futures[-1][1]

    def finish(self):
        plan, future = self.futures.pop(0)
        future.set_result(StepResult(step_id=plan.step_id, epoch=plan.epoch, token_ids=[]))


def test_advancing_never_waits_and_says_when_to_come_again():
    scheduler, executor, calls = FakeScheduler(3), SlowExecutor(), []
    core = EngineCore(
        scheduler, executor, ManualClock(), max_steps_in_flight=1, on_step_done=lambda: calls.append("done")
    )
    assert core.advance() == []
    assert (core.is_waiting_for_step, executor.submitted, calls) == (True, [0], [])
    executor.finish()
    assert calls == ["done"]
    assert [delta.request_id for delta in core.advance()] == ["0"]
    assert (executor.submitted, core.num_steps_done) == ([0, 1], 1)


def test_advancing_takes_all_that_is_done_and_plans_the_next_at_once():
    scheduler, executor = FakeScheduler(5), SlowExecutor()
    core = EngineCore(scheduler, executor, ManualClock(), max_steps_in_flight=3)
    core.advance()
    executor.finish()
    executor.finish()
    assert [delta.request_id for delta in core.advance()] == ["0", "1"]
    assert executor.submitted == [0, 1, 2, 3, 4]
