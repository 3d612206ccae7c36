"""Watches an engine that has work, and has it killed when it makes no progress.

Owns: the clockwork: pings, looks, the kill.   Does not own: the verdict (fault/watchdog.py).
While no request is live nothing ticks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from octavo.base.log import get_logger
from octavo.engine.front.dispatch import Dispatcher
from octavo.fault.state import EngineEvent, EngineState
from octavo.fault.watchdog import StallWatch, Verdict
from octavo.proto.messages import Load

logger = get_logger(__name__)

SILENCE_S = 4.0
"""An engine that has work and says nothing for so long is SUSPECT: it answers pings even while a step runs."""


class EngineWatch:
    """A ProgressListener. `kill` is called with the cause."""

    def __init__(self, dispatcher: Dispatcher, kill: Callable[[str], None], *, stall_timeout_s: float) -> None:
        self._dispatcher = dispatcher
        self._kill = kill
        self._stall = StallWatch(stall_timeout_s, silence_s=SILENCE_S)
        self._interval_s = self._stall.silence_s / 4
        self._timer: asyncio.TimerHandle | None = None
        self._look_at_s = 0.0

    def work_began(self) -> None:
        """See ProgressListener."""
        loop = asyncio.get_running_loop()
        self._stall.restart(loop.time())
        if self._timer is None:
            self._schedule(loop)

    def heard(self, load: Load) -> None:
        """See ProgressListener."""
        now_s = asyncio.get_running_loop().time()
        self._stall.hear(load.num_steps, now_s)
        if self._dispatcher.state is EngineState.SUSPECT:
            self._dispatcher.note(EngineEvent.PROGRESS)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look_at_s = loop.time() + self._interval_s
        self._timer = loop.call_later(self._interval_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._dispatcher.streams:
            return
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if now_s - self._look_at_s > self._interval_s:
            # This process itself was stopped or starved: nothing that it did not see counts.
            self._stall.restart(now_s)
        if self._dispatcher.state in (EngineState.HEALTHY, EngineState.SUSPECT, EngineState.DRAINING):
            self._act(self._stall.judge(now_s), now_s)
        self._schedule(loop)

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
