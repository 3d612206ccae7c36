"""An engine in a thread of this process, behind the same interface as one in its own.

For programs that embed an engine and accept what comes with it: no isolation, no restart, one interpreter lock.
Owns: the thread and the queue to it.   Does not own: the engine (build.py, loop.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from octavo.base.clock import MonotonicClock
from octavo.base.errors import EngineDeadError
from octavo.base.log import get_logger
from octavo.config.schema import EngineConfig
from octavo.engine.front.link import LinkListener
from octavo.engine.loop import EngineLoop, throughput_log
from octavo.engine.process.supervisor import RunningEngine
from octavo.engine.timeline import Timeline
from octavo.proto.messages import ClientMessage, EngineMessage

logger = get_logger(__name__)

MAX_MESSAGES_PER_TURN = 64


class QueuePort:
    """A Port whose messages are passed by reference. `put` and `wake` from any thread, the rest from the engine's."""

    num_dropped_frames = 0
    """Values are passed, not frames."""

    def __init__(self, deliver: Callable[[EngineMessage], None]) -> None:
        self._deliver = deliver
        self._incoming: queue.SimpleQueue[ClientMessage | None] = queue.SimpleQueue()
        """None only wakes."""
        self._taken: deque[ClientMessage] = deque()

    def put(self, message: ClientMessage) -> None:
        """Hand a message to the engine."""
        self._incoming.put(message)

    def receive(self) -> Iterator[tuple[int, ClientMessage]]:
        """See Port.receive."""
        with contextlib.suppress(queue.Empty):
            while len(self._taken) < MAX_MESSAGES_PER_TURN:
                self._take(self._incoming.get_nowait())
        while self._taken:
            yield 0, self._taken.popleft()

    def _take(self, message: ClientMessage | None) -> None:
        if message is not None:
            self._taken.append(message)

    def send(self, client_idx: int, message: EngineMessage) -> None:
        """See Port.send. There is one front end."""
        self._deliver(message)

    def wait(self, timeout_s: float | None) -> None:
        """See Port.wait."""
        with contextlib.suppress(queue.Empty):
            self._take(self._incoming.get(timeout=timeout_s))

    def wake(self) -> None:
        """See Port.wake."""
        self._incoming.put(None)


class ThreadLink:
    """An EngineLink to a thread."""

    def __init__(self, config: EngineConfig, listener: LinkListener) -> None:
        self._config = config
        self._listener = listener
        self._port = QueuePort(self._deliver)
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._engine_loop: EngineLoop | None = None
        self._up: asyncio.Future[None] | None = None
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    async def start(self) -> None:
        """See EngineLink.start."""
        self._event_loop = asyncio.get_running_loop()
        self._up = self._event_loop.create_future()
        self._thread = threading.Thread(target=self._run, name="octavo-engine", daemon=True)
        self._thread.start()
        await asyncio.shield(self._up)

    def send(self, message: ClientMessage) -> None:
        """See EngineLink.send."""
        self._port.put(message)

    def kill(self, cause: str) -> None:
        """A thread cannot be killed: the engine is given up."""
        self._is_stopping = True
        if self._engine_loop is not None:
            self._engine_loop.stop()
        self._listener.engine_dead(cause)

    async def stop(self, timeout_s: float) -> None:
        """See EngineLink.stop."""
        self._is_stopping = True
        if self._engine_loop is not None:
            self._engine_loop.stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, timeout_s)

    # ---- in the engine's thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        from octavo.engine.build import build_core

        try:
            timeline = Timeline(MonotonicClock())
            resolved, core = build_core(self._config, timeline, on_step_done=self._port.wake)
            throughput = throughput_log(is_disabled=resolved.disable_log_stats)
            self._engine_loop = EngineLoop(core, self._port, incarnation=0, throughput=throughput)
            engine = RunningEngine(address="", incarnation=0, config=resolved, phases=timeline.phases)
            self._tell(self._note_up, engine)
            if not self._is_stopping:
                self._engine_loop.run()
            core.shutdown()
        except BaseException as error:
            self._tell(self._note_failure, error)

    def _deliver(self, message: EngineMessage) -> None:
        self._tell(self._receive, message)

    def _tell(self, action: Callable[[Any], None], value: Any) -> None:
        assert self._event_loop is not None
        with contextlib.suppress(RuntimeError):  # the event loop has ended: nobody is there to hear
            self._event_loop.call_soon_threadsafe(action, value)

    # ---- on the event loop ------------------------------------------------------------------------------------------

    def _receive(self, message: EngineMessage) -> None:
        if not self._is_stopping:
            self._listener.receive(message)

    def _note_up(self, engine: RunningEngine) -> None:
        if not self._is_stopping:
            self._listener.engine_up(engine)
        assert self._up is not None
        self._up.set_result(None)

    def _note_failure(self, error: BaseException) -> None:
        assert self._up is not None
        if not self._up.done():
            self._up.set_exception(error)
            return
        logger.error("the engine's thread cannot go on", exc_info=error)
        if not self._is_stopping:
            cause = str(error) if isinstance(error, EngineDeadError) else f"{type(error).__name__}: {error}"
            self._listener.engine_dead(cause)
