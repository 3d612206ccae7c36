"""Watches an engine that has work, and has it killed when it makes no progress.

Owns: the clockwork: pings, looks, the kill.   Does not own: the verdict (fault/watchdog.py).
While no request is live nothing ticks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from octavo.base.log import get_logger
from octavo.engine.front.dispatch import Dispatcher
from octavo.fault.state import EngineEvent, EngineState
from octavo.fault.watchdog import StallWatch, Verdict
from octavo.proto.messages import Load

logger = get_logger(__name__)

SILENCE_S = 4.0
"""An engine that has work and says nothing for so long is SUSPECT: it answers pings even while a step runs."""


class Timer(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """An event loop's clock."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer: ...


class EngineWatch:
    """A ProgressListener. `kill` is called with the cause. timers: of the running event loop, if they are not given."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        kill: Callable[[str], None],
        *,
        stall_timeout_s: float,
        timers: Timers | None = None,
    ) -> None:
        self._timers: Timers = timers or asyncio.get_running_loop()
        self._dispatcher = dispatcher
        self._kill = kill
        self._stall = StallWatch(stall_timeout_s, silence_s=SILENCE_S)
        self._interval_s = self._stall.silence_s / 4
        self._timer: Timer | None = None
        self._look_at_s = 0.0

    def work_began(self) -> None:
        """See ProgressListener."""
        self._stall.restart(self._timers.time())
        if self._timer is None:
            self._schedule()

    def heard(self, load: Load) -> None:
        """See ProgressListener."""
        self._stall.hear(load.num_steps, self._timers.time())
        if self._dispatcher.state is EngineState.SUSPECT:
            self._dispatcher.note(EngineEvent.PROGRESS)

    def _schedule(self) -> None:
        self._look_at_s = self._timers.time() + self._interval_s
        self._timer = self._timers.call_later(self._interval_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._dispatcher.streams:
            return
        now_s = self._timers.time()
        if now_s - self._look_at_s > self._interval_s:
            # This process itself was stopped or starved: nothing that it did not see counts.
            self._stall.restart(now_s)
        if self._dispatcher.state in (EngineState.HEALTHY, EngineState.SUSPECT, EngineState.DRAINING):
            self._act(self._stall.judge(now_s), now_s)
        self._schedule()

    def _act(self, verdict: Verdict, now_s: float) -> None:
        if verdict is Verdict.STALLED:
            cause = f"no step has finished for {self._stall.stalled_for_s(now_s):.1f} s although requests are running"
            self._dispatcher.note(EngineEvent.STALL)
            logger.error("%s; the engine's stacks follow, then it is killed", cause)
            self._stall.restart(now_s)
            self._kill(cause)
            return
        if verdict is Verdict.SILENT and self._dispatcher.state is EngineState.HEALTHY:
            logger.warning("the engine has work and has not answered for %g s", self._stall.silence_s)
            self._dispatcher.note(EngineEvent.STALL)
        self._dispatcher.ping()

    def close(self) -> None:
        """Nothing ticks afterwards."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
