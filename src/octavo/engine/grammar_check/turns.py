"""Whose turn it is: a lock that hosts take in turn, and the connections of one host among themselves.

Owns: who waits, and the order.   Does not own: what is done with the turn.
Invariant: between two turns of one asker every other host that waits has one, and every other connection of its host.
On one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque

Asker = tuple[str, str]
"""(host, connection) of a request."""
SELF: Asker = ("", "")
"""This process."""


class FairTurns:
    """Cost: constant for a turn that is taken, linear in who waits for one that is given up."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}
        """Host -> connection -> those who wait, each in order; the first of each is next."""

    async def acquire(self, asker: Asker) -> None:
        """Wait for a turn; `release` it."""
        if not self._is_taken:
            self._is_taken = True
            return
        host, connection = asker
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(host, {}).setdefault(connection, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(asker, turn)
            else:
                self.release()
            raise

    def release(self) -> None:
        """The next one's turn."""
        turn = self._take_next()
        if turn is None:
            self._is_taken = False
        else:
            turn.set_result(None)

    def _take_next(self) -> asyncio.Future[None] | None:
        while self._waiting:
            host = next(iter(self._waiting))
            connections = self._waiting.pop(host)
            connection = next(iter(connections))
            waiting = connections.pop(connection)
            turn = waiting.popleft()
            if waiting:
                connections[connection] = waiting
            if connections:
                self._waiting[host] = connections
            if not turn.done():
                return turn
        return None

    def _forget(self, asker: Asker, turn: asyncio.Future[None]) -> None:
        host, connection = asker
        connections = self._waiting.get(host, {})
        waiting = connections.get(connection)
        if waiting is None or turn not in waiting:
            return
        waiting.remove(turn)
        if not waiting:
            del connections[connection]
        if not connections:
            del self._waiting[host]
