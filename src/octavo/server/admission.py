"""Whether a request may queue up, decided before its prompt is looked at.

Owns: the bound on what waits, in requests and in tokens.   Does not own: the queue (the engine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from octavo.fault.state import EngineState
from octavo.server.errors import RETRY_AFTER_S, ApiError, unavailable

CHARS_PER_TOKEN = 4
"""To guess the tokens of a text; the real number is known only when it is too late to be cheap."""


class QueueFullError(ApiError):
    """Too much is waiting. `reason` is the option whose limit was reached."""

    def __init__(self, reason: str, message: str) -> None:
        text = f"The server is overloaded ({reason}: {message})."
        super().__init__(503, "queue_full", text, headers={"retry-after": str(RETRY_AFTER_S)})
        self.reason = reason


class Engine(Protocol):
    """What admission looks at."""

    @property
    def state(self) -> EngineState: ...


class Queue(Protocol):
    """What waits at all front ends of the server."""

    @property
    def num_queued_requests(self) -> int: ...
    @property
    def num_queued_tokens(self) -> int: ...


@dataclass(slots=True)
class Admission:
    """Raises ApiError 503 with Retry-After for what cannot be taken now."""

    engine: Engine
    queue: Queue
    max_requests: int
    max_tokens: int
    is_draining: bool = False

    def check(self, *, num_requests: int, num_tokens: int) -> None:
        """A request that makes so many engine requests of so many prompt tokens in all. Cost: a few reads."""
        if self.is_draining:
            raise unavailable("shutting_down", "The server is shutting down.", closes=True)
        state = self.engine.state
        if not state.takes_requests:
            raise unavailable("unavailable", f"The engine is {state.value}.", closes=True)
        waiting = self.queue.num_queued_requests
        if waiting + num_requests > self.max_requests:
            what = f"{waiting} requests are waiting, at most {self.max_requests} may"
            raise QueueFullError("max_num_queued_reqs", what)
        waiting_tokens = self.queue.num_queued_tokens
        if waiting and waiting_tokens + num_tokens > self.max_tokens:
            what = f"{waiting_tokens} prompt tokens are waiting, at most {self.max_tokens} may"
            raise QueueFullError("max_num_queued_tokens", what)
