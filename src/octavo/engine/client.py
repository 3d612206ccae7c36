"""How a front end talks to an engine, wherever the engine runs.

`EngineClient` is the interface; `InProcessClient` runs the engine in the caller's thread.
Guarantees of every client: the deltas of one request arrive in order, exactly one of them ends it; an aborted request
gives no further tokens after the next `receive` returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from octavo.engine.core import EngineCore
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.stats import EngineStats


class EngineClient(Protocol):
    """One engine, as seen from a front end."""

    @property
    def has_work(self) -> bool:
        """True while a request is unfinished."""
        ...

    def add(self, request: NewRequest) -> None:
        """Hand a request over. Raises ValidationError or CapacityError when it can never run."""
        ...

    def abort(self, request_ids: Sequence[str]) -> None:
        """End these requests. Idempotent; unknown ids are ignored."""
        ...

    def receive(self) -> list[RequestDelta]:
        """Block until something happened; the deltas since the last call. Raises EngineDeadError."""
        ...

    def stats(self) -> EngineStats: ...

    def reset_prefix_cache(self, *, reset_running: bool = False) -> bool:
        """Forget all cached prefixes; False when blocks in use prevent it."""
        ...

    def check_health(self) -> None:
        """Raises EngineDeadError when the engine cannot answer."""
        ...

    def shutdown(self) -> None:
        """Release the engine. Idempotent."""
        ...


class InProcessClient:
    """The engine in this thread: `receive` runs one step."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._ended: list[RequestDelta] = []

    @property
    def has_work(self) -> bool:
        return self._core.has_work or bool(self._ended)

    def add(self, request: NewRequest) -> None:
        self._core.add(request)

    def abort(self, request_ids: Sequence[str]) -> None:
        self._ended += self._core.abort(request_ids)

    def receive(self) -> list[RequestDelta]:
        ended, self._ended = self._ended, []
        return ended + self._core.step()

    def stats(self) -> EngineStats:
        return self._core.stats()

    def reset_prefix_cache(self, *, reset_running: bool = False) -> bool:
        return self._core.reset_prefix_cache(reset_running=reset_running)

    def check_health(self) -> None:
        self._core.check_health()

    def shutdown(self) -> None:
        self._core.shutdown()
