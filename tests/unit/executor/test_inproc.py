"""InProcessExecutor: order, bounds, exceptions, health and the end of its thread."""

import gc
import subprocess
import sys
import threading
import time

import pytest
from fakes.plans import plan

from octavo.base.errors import EngineDeadError, InvariantError
from octavo.executor import InProcessExecutor
from octavo.proto.result import StepResult


class FakeRunner:
    """Waits for `gate` in each step; steps named in `errors` raise."""

    def __init__(self, errors=None) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.executed: list[int] = []
        self.threads: set[int] = set()
        self.errors: dict[int, BaseException] = errors or {}

    def execute(self, plan) -> StepResult:
        self.started.set()
        assert self.gate.wait(10)
        self.executed.append(plan.step_id)
        self.threads.add(threading.get_ident())
        if plan.step_id in self.errors:
            raise self.errors[plan.step_id]
        return StepResult(step_id=plan.step_id, epoch=plan.epoch, token_ids=[])

    def num_executed(self, *, plus: int = 0) -> int:
        self.threads.add(threading.get_ident())
        return len(self.executed) + plus


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def executor(runner):
    executor = InProcessExecutor(runner, max_concurrent_steps=3)
    yield executor
    runner.gate.set()
    executor.shutdown(10)


def test_steps_run_in_order_on_one_other_thread(executor, runner):
    runner.gate.clear()
    futures = [executor.submit(plan(i, [])) for i in range(3)]
    runner.gate.set()
    assert [future.result(10).step_id for future in futures] == runner.executed == [0, 1, 2]
    assert len(runner.threads) == 1
    assert threading.get_ident() not in runner.threads


def test_no_more_steps_than_agreed_are_in_flight(executor, runner):
    runner.gate.clear()
    first, _, _ = (executor.submit(plan(i, [])) for i in range(3))
    with pytest.raises(InvariantError, match="more than 3"):
        executor.submit(plan(3, []))
    runner.gate.set()
    first.result(10)
    executor.submit(plan(3, [])).result(10)


def test_an_exception_travels_in_its_own_future_only(executor, runner):
    runner.errors = {1: ValueError("bad step")}
    futures = [executor.submit(plan(i, [])) for i in range(3)]
    assert futures[0].result(10).step_id == 0
    with pytest.raises(ValueError, match="bad step"):
        futures[1].result(10)
    assert futures[2].result(10).step_id == 2
    executor.check_health()


def test_even_a_system_exit_does_not_end_the_thread(executor, runner):
    runner.errors = {0: SystemExit(1)}
    assert isinstance(executor.submit(plan(0, [])).exception(10), SystemExit)
    assert executor.submit(plan(1, [])).result(10).step_id == 1


def test_a_call_runs_behind_the_plans_on_the_same_thread(executor, runner):
    runner.gate.clear()
    executor.submit(plan(0, []))
    threading.Timer(0.02, runner.gate.set).start()
    assert executor.collective_rpc("num_executed", plus=10, timeout_s=10) == [11]
    assert len(runner.threads) == 1


@pytest.mark.parametrize("name", ["_private", "missing", "executed", "__init__"])
def test_only_public_methods_can_be_called(executor, name):
    with pytest.raises(InvariantError, match=name):
        executor.collective_rpc(name)


def test_shutdown_ends_the_running_step_and_refuses_the_queued(executor, runner):
    runner.gate.clear()
    running, queued = (executor.submit(plan(i, [])) for i in range(2))
    assert runner.started.wait(10)
    with pytest.raises(TimeoutError):
        executor.shutdown(0.01)
    runner.gate.set()
    executor.shutdown(10)
    assert running.result(10).step_id == 0
    with pytest.raises(EngineDeadError):
        queued.result(10)
    assert runner.executed == [0]
    assert not executor._thread.is_alive()


def test_after_shutdown_nothing_is_taken_and_shutting_down_again_is_harmless(executor):
    executor.check_health()
    executor.shutdown()
    executor.shutdown()
    for call in (executor.check_health, lambda: executor.submit(plan(0, [])), lambda: executor.collective_rpc("x")):
        with pytest.raises(EngineDeadError):
            call()


def test_a_dropped_executor_ends_its_thread():
    executor = InProcessExecutor(FakeRunner())
    thread = executor._thread
    executor.submit(plan(0, [])).result(10)
    del executor
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_waiting_costs_no_cpu(executor):
    executor.submit(plan(0, [])).result(10)
    before = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - before < 0.02


def test_an_interpreter_ends_though_nobody_shut_the_executor_down():
    code = "from octavo.executor import InProcessExecutor; keep = InProcessExecutor(None)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


def test_a_step_that_hangs_does_not_hang_the_interpreters_end():
    code = """
import threading
from octavo.executor import InProcessExecutor, inproc

class HungRunner:
    def __init__(self):
        self.started = threading.Event()
    def execute(self, plan):
        self.started.set()
        threading.Event().wait()

inproc._END_TIMEOUT_S = 0.05
runner = HungRunner()
executor = InProcessExecutor(runner)
executor.submit(None)
assert runner.started.wait(10)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
