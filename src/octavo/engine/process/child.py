"""A handle on one engine process, from the outside.

Owns: our end of the socket pair, noticing its death whatever the cause, reaping it.
Does not own: whether and when to start another (supervisor.py).
Invariants: `on_exit` is called exactly once, after the last `on_status`, as soon as the kernel says that the process is
gone (pidfd); no descriptor and no zombie is left then.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from octavo.engine.process.channel import Channel
from octavo.engine.process.signals import STACK_SIGNAL
from octavo.engine.process.spawned import SpawnedEngine
from octavo.proto.codec import control_codec, status_codec
from octavo.proto.messages import ControlMessage, StartEngine, StatusMessage

STACKS_S = 0.3
"""Time for a process to write its stacks before it is killed."""


class EngineChild:
    """One engine process. On one event loop."""

    def __init__(
        self,
        start: StartEngine,
        *,
        on_status: Callable[[EngineChild, StatusMessage], None],
        on_exit: Callable[[EngineChild, str], None],
        spawned: SpawnedEngine | None = None,
    ) -> None:
        self.incarnation = start.incarnation
        self._on_exit = on_exit
        self._kill_cause: str | None = None
        self._loop = asyncio.get_running_loop()
        self._process, ours = (spawned or SpawnedEngine()).claim()
        self._channel = Channel(
            ours, status_codec(), control_codec(), on_message=lambda message: on_status(self, message)
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self.tell(start)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, message: ControlMessage) -> None:
        """Send an order; one to a process that is just dying is lost."""
        self._channel.send(message)

    def kill(self, cause: str, *, with_stacks: bool = False) -> None:
        """SIGKILL; `cause` is what on_exit will say. with_stacks: have it write all its stacks to stderr before."""
        if self._kill_cause is not None:
            return
        self._kill_cause = cause
        if with_stacks:
            self._signal(STACK_SIGNAL)
            self._loop.call_later(STACKS_S, self._signal, signal.SIGKILL)
        else:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._pidfd >= 0:
            signal.pidfd_send_signal(self._pidfd, number)

    def _reap(self) -> None:
        self._channel.read()
        code = self._process.wait()
        self._loop.remove_reader(self._pidfd)
        self._channel.close()
        os.close(self._pidfd)
        self._pidfd = -1
        self._on_exit(self, self._kill_cause or describe_exit(code))


def describe_exit(code: int) -> str:
    """An exit code as people say it."""
    if code >= 0:
        return f"the engine process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ": out of memory, or killed by hand" if name == "SIGKILL" else ""
    return f"the engine process was killed by {name}{hint}"
