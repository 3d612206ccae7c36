"""How a front end reaches an engine, wherever it runs: messages to it, messages and news from it.

`ProcessLink` and `AttachedLink` (remote.py), `ThreadLink` (thread_link.py).
Guarantees: what is sent to one incarnation arrives in order or not at all; nothing of an incarnation is received after
`engine_down`. Everything on one event loop; nothing blocks it.
"""

from __future__ import annotations

from typing import Protocol

from octavo.engine.process.supervisor import EngineListener
from octavo.proto.messages import ClientMessage, EngineMessage, Load


class LinkListener(EngineListener, Protocol):
    """What a front end does with what comes."""

    def receive(self, message: EngineMessage) -> None: ...

    def note_dropped_frame(self, why: str) -> None:
        """A frame came that was no message; it was dropped."""
        ...


class ProgressListener(Protocol):
    """Who watches the engine (watch.py)."""

    def work_began(self) -> None:
        """The first request came to an engine that had none, or to a new engine."""
        ...

    def heard(self, load: Load) -> None: ...


class EngineLink(Protocol):
    """One engine, or the succession of them."""

    async def start(self) -> None:
        """Returns once `engine_up` was called. Raises ConfigError, LoadError, CapacityError, EngineDeadError."""
        ...

    def send(self, message: ClientMessage) -> None:
        """Between engine_up and engine_down. Raises ProtocolError for a message that is too large."""
        ...

    def kill(self, cause: str) -> None:
        """The engine hangs: end it by force where that is possible."""
        ...

    async def stop(self, timeout_s: float) -> None:
        """End the engine and release everything. Idempotent."""
        ...
