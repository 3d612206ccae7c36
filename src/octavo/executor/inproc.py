"""InProcessExecutor: the worker is a thread of this process.

Owns: the thread and the queue to it.   Does not own: the runner's work.
Invariants: the thread blocks in the queue when idle; it holds no reference to the executor, so that dropping the
executor ends it, as does the end of the interpreter; no job is ever lost: each future is settled.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from octavo.base.errors import EngineDeadError, InvariantError
from octavo.proto.plan import StepPlan
from octavo.proto.result import StepResult

_END_TIMEOUT_S = 5.0
"""Nobody is left who could act on a step that hangs: the interpreter waits so long for the running one, then ends."""


class Worker(Protocol):
    """What the executor drives; `runner.ModelRunner` is one."""

    def execute(self, plan: StepPlan) -> StepResult: ...


class _Job(NamedTuple):
    future: Future[Any]
    work: Callable[[], Any]


class _Link:
    """What the executor and its thread share: the jobs, and whether more are taken."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        """None is the last entry and ends the thread."""
        self.is_stopping = False
        self._lock = threading.Lock()

    def put(self, job: _Job) -> None:
        """Queue a job. Raises EngineDeadError once stopping."""
        with self._lock:
            if self.is_stopping:
                raise EngineDeadError("the executor was shut down")
            self.jobs.put(job)

    def stop(self) -> None:
        """Take no more jobs; the thread ends after the running one. Calling again does nothing."""
        with self._lock:
            if not self.is_stopping:
                self.is_stopping = True
                self.jobs.put(None)


class InProcessExecutor:
    """Runs plans of one runner on one thread."""

    def __init__(self, runner: Worker, max_concurrent_steps: int = 1) -> None:
        self.max_concurrent_steps = max_concurrent_steps
        self._runner = runner
        self._in_flight: list[Future[StepResult]] = []
        self._link = _Link()
        # Daemon, so that an executor that nobody shut down cannot hang the interpreter's end; the finalizer still ends
        # the thread in order, then and when the executor is collected.
        self._thread = threading.Thread(target=_serve, args=(self._link,), name="octavo-executor", daemon=True)
        self._thread.start()
        self._stop = weakref.finalize(self, _end_thread, self._link, self._thread)

    def submit(self, plan: StepPlan) -> Future[StepResult]:
        """Queue a plan; see Executor.submit."""
        self.check_health()
        self._in_flight = [future for future in self._in_flight if not future.done()]
        if len(self._in_flight) >= self.max_concurrent_steps:
            raise InvariantError(f"step {plan.step_id} would be more than {self.max_concurrent_steps} in flight")
        runner = self._runner
        future: Future[StepResult] = self._queue(lambda: runner.execute(plan))
        self._in_flight.append(future)
        return future

    def collective_rpc(self, name: str, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> list[Any]:
        """Call a public method of the runner on the executor's thread; see Executor.collective_rpc."""
        self.check_health()
        method = None if name.startswith("_") else getattr(self._runner, name, None)
        if not callable(method):
            raise InvariantError(f"the runner has no public method {name!r}")
        return [self._queue(lambda: method(*args, **kwargs)).result(timeout_s)]

    def check_health(self) -> None:
        """Raises EngineDeadError after shutdown or when the thread is gone."""
        if self._link.is_stopping:
            raise EngineDeadError("the executor was shut down")
        if not self._thread.is_alive():
            raise EngineDeadError("the executor's thread has ended")

    def shutdown(self, timeout_s: float | None = None) -> None:
        """Let the running step end and refuse the queued ones; see Executor.shutdown."""
        self._link.stop()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the running step did not end within {timeout_s} s")
        self._stop.detach()

    def _queue(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._link.put(_Job(future, work))
        return future


def _end_thread(link: _Link, thread: threading.Thread) -> None:
    link.stop()
    if thread is not threading.current_thread():
        thread.join(_END_TIMEOUT_S)


def _serve(link: _Link) -> None:
    """Run jobs until told to end; then refuse what is still queued."""
    while (job := link.jobs.get()) is not None:
        if link.is_stopping:
            job.future.set_exception(EngineDeadError("the executor was shut down before this step ran"))
        else:
            _settle(job)
        del job  # or the last result and plan would live until the next job


def _settle(job: _Job) -> None:
    try:
        result = job.work()
    except BaseException as error:  # whoever waits decides; this thread must go on
        job.future.set_exception(error)
    else:
        job.future.set_result(result)
