"""The loop of one engine: plan, submit, wait for the oldest, hand out what it gave.

Owns: the queue of steps in flight.   Does not own: planning (scheduler), arithmetic (executor), text (front end).
Invariants: plans are submitted and their results applied in one order; at most `max_steps_in_flight` are in flight;
a step that failed voids all behind it, and nothing new is submitted before those have returned.
Thread: one. Two ways to drive it: `step` waits for the oldest step in flight, `advance` never waits, and `on_step_done`
(called from the executor's thread) says when it is worth calling again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from octavo.base.clock import Clock
from octavo.base.errors import EngineDeadError
from octavo.base.log import get_logger
from octavo.core.scheduler import Scheduler
from octavo.engine.grammars import GrammarService, NoGrammars
from octavo.executor.interface import Executor
from octavo.obs.step_meter import StepMeter
from octavo.proto.failure import internal_failure
from octavo.proto.output import RequestDelta
from octavo.proto.plan import StepPlan
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult
from octavo.proto.stats import EngineStats

logger = get_logger(__name__)

UNREADY_WAIT_S = 0.05
"""How long `step` waits for a grammar: deadlines are looked at so often."""


class StepInFlight(NamedTuple):
    """A plan and its result to be."""

    plan: StepPlan
    future: Future[StepResult]


class EngineCore:
    """Scheduler and executor, joined by the queue of steps in flight."""

    def __init__(
        self,
        scheduler: Scheduler,
        executor: Executor,
        clock: Clock,
        *,
        max_steps_in_flight: int,
        on_step_done: Callable[[], None] | None = None,
        meter: StepMeter | None = None,
        grammars: GrammarService | None = None,
    ) -> None:
        """grammars: the desk that the scheduler asks; None: no request is constrained."""
        self._scheduler = scheduler
        self._executor = executor
        self._clock = clock
        self._max_steps_in_flight = max_steps_in_flight
        self._on_step_done = on_step_done
        self._meter = meter or StepMeter()
        self._grammars: GrammarService = grammars or NoGrammars()
        self._in_flight: deque[StepInFlight] = deque()
        self.num_steps_done = 0
        """Steps whose results were taken, failed ones included."""

    @property
    def is_waiting_for_step(self) -> bool:
        """True while a step is in flight: `on_step_done` will be called."""
        return bool(self._in_flight)

    @property
    def has_work(self) -> bool:
        """True while a request is unfinished or a step is in flight."""
        return self._scheduler.has_work or bool(self._in_flight)

    def add(self, request: NewRequest) -> None:
        """Queue a request. Raises ValidationError or CapacityError for one that can never run."""
        self._scheduler.add(request)

    def abort(self, request_ids: Sequence[str]) -> list[RequestDelta]:
        """End these requests now; unknown and finished ids are ignored. Returns their last deltas."""
        return self._note_ends(self._scheduler.abort(request_ids))

    def step(self) -> list[RequestDelta]:
        """Keep the queue of steps full, wait for the oldest, and return what its requests gained.

        Where every request waits for its grammar, it waits for one of those, a moment. Raises EngineDeadError when the
        executor cannot go on.
        """
        self._fill()
        deltas = self._scheduler.take_deltas(self._clock.now_s())
        if self._in_flight:
            deltas += self._collect()
        elif not deltas:
            self._grammars.wait(UNREADY_WAIT_S)
        return self._note_ends(deltas)

    def advance(self) -> list[RequestDelta]:
        """Take the results that are there, keep the queue of steps full, and return what the requests gained.

        Raises EngineDeadError when the executor cannot go on.
        """
        deltas: list[RequestDelta] = []
        while self._in_flight and self._in_flight[0].future.done():
            deltas += self._collect()
        self._fill()
        return self._note_ends(deltas + self._scheduler.take_deltas(self._clock.now_s()))

    def _note_ends(self, deltas: list[RequestDelta]) -> list[RequestDelta]:
        """Ended requests need their grammars no more."""
        self._grammars.let_go(delta.request_id for delta in deltas if delta.finish_reason is not None)
        return deltas

    def _fill(self) -> None:
        """Plan and submit until the queue is full or nothing is to do."""
        while len(self._in_flight) < self._max_steps_in_flight:
            started_s = self._clock.now_s()
            plan = self._scheduler.schedule(started_s)
            self._meter.add_plan(self._clock.now_s() - started_s)
            if plan is None:
                return
            self._grammars.note_started(new.request_id for new in plan.new)
            future = self._executor.submit(plan)
            self._in_flight.append(StepInFlight(plan, future))
            if self._on_step_done is not None:
                future.add_done_callback(self._note_done)

    def _note_done(self, _: Future[StepResult]) -> None:
        if self._on_step_done is not None:
            self._on_step_done()

    def _collect(self) -> list[RequestDelta]:
        """Wait for the oldest step and apply it."""
        plan, future = self._in_flight[0]
        error = future.exception()
        self._in_flight.popleft()
        self.num_steps_done += 1
        if error is None:
            return self._apply(plan, future.result())
        return self._recover(plan, error)

    def _apply(self, plan: StepPlan, result: StepResult) -> list[RequestDelta]:
        started_s = self._clock.now_s()
        deltas = self._scheduler.update(result, started_s)
        output_s = self._clock.now_s() - started_s
        self._meter.add_step(plan.num_scheduled_tokens, result.timings, output_s=output_s)
        return deltas

    def _recover(self, plan: StepPlan, error: BaseException) -> list[RequestDelta]:
        """Void the failed step and all behind it; their requests compute again, or end with an error."""
        if isinstance(error, EngineDeadError):
            raise error
        logger.error("step %d failed: %r; what is in flight is computed again", plan.step_id, error, exc_info=error)
        while self._in_flight:
            self._in_flight.popleft().future.exception()
        self._scheduler.fail_step(plan, internal_failure(error))
        return self._scheduler.take_deltas(self._clock.now_s())

    @property
    def is_prepared_for_grammars(self) -> bool:
        """True: the first constrained request has nothing more to wait for than any other. From any thread."""
        return self._grammars.is_prepared

    def prepare_for_grammars(self) -> None:
        """Make what all grammars share. From any thread; others stand still for up to 2 s. Raises what that raises."""
        self._grammars.prepare()

    @property
    def num_running(self) -> int:
        return self._scheduler.num_running

    @property
    def num_waiting(self) -> int:
        return self._scheduler.num_waiting

    def stats(self) -> EngineStats:
        """Counters of the scheduler, of KV memory, of grammars and of the steps that have returned, as of now."""
        return EngineStats(
            scheduler=self._scheduler.stats(), steps=self._meter.stats(), grammars=self._grammars.stats()
        )

    def reset_prefix_cache(self, *, reset_running: bool = False) -> bool:
        """Forget all cached prefixes. False: blocks were in use and nothing was forgotten."""
        return self._scheduler.reset_prefix_cache(reset_running=reset_running)

    def check_health(self) -> None:
        """Raises EngineDeadError when the executor cannot work."""
        self._executor.check_health()

    def shutdown(self) -> None:
        """Wait for what is in flight and release the executor. Calling again does nothing."""
        while self._in_flight:
            self._in_flight.popleft().future.exception()
        self._grammars.close()
        self._executor.shutdown()
