"""Messages to the engine that are answered: who waits for which answer.

Owns: the numbers of calls, the waiting.   Does not own: sending.
Invariant: a call ends by its answer, its time, or the engine's death, whichever comes first.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from octavo.base.errors import EngineDeadError
from octavo.proto.messages import ClientMessage, EngineMessage


class Calls:
    """The calls of one front end. On one event loop."""

    def __init__(self, send: Callable[[ClientMessage], None]) -> None:
        self._send = send
        self._waiting: dict[int, asyncio.Future[EngineMessage]] = {}
        self._ids = itertools.count()

    def new_id(self) -> int:
        """For a message whose answer nobody waits for."""
        return next(self._ids)

    async def call(self, make: Callable[[int], ClientMessage], timeout_s: float) -> EngineMessage:
        """Send what `make` makes of a number, and wait for the answer with that number. Raises EngineDeadError."""
        call_id = self.new_id()
        self._waiting[call_id] = asyncio.get_running_loop().create_future()
        try:
            self._send(make(call_id))
            return await asyncio.wait_for(self._waiting[call_id], timeout_s)
        except TimeoutError:
            raise EngineDeadError(f"the engine did not answer within {timeout_s:g} s") from None
        finally:
            del self._waiting[call_id]

    def answer(self, call_id: int, message: EngineMessage) -> None:
        """An answer has come; one that nobody waits for is ignored."""
        future = self._waiting.get(call_id)
        if future is not None and not future.done():
            future.set_result(message)

    def fail_all(self, cause: str) -> None:
        """No answer will come."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(EngineDeadError(cause))
