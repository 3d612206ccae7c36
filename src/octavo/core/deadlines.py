"""Requests by deadline.

Owns: which requests have a deadline. Does not own: time (it comes in as `now_s`), the end of a request.
"""

from __future__ import annotations

import heapq

from octavo.core.request import Request

_MIN_SIZE = 64


class DeadlineQueue:
    """A heap with lazy removal: finished requests leave when they come up, or when they are more than half of it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Request]] = []
        self._max_size = _MIN_SIZE

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, request: Request) -> None:
        """Watch a request's deadline, if it has one. Amortised O(log n)."""
        deadline_s = request.client.deadline_s
        if deadline_s is None:
            return
        if len(self._heap) >= self._max_size:
            self._heap = [entry for entry in self._heap if not entry[2].is_finished]
            heapq.heapify(self._heap)
            self._max_size = max(_MIN_SIZE, 2 * len(self._heap))
        heapq.heappush(self._heap, (deadline_s, request.ordinal, request))

    def take_expired(self, now_s: float) -> list[Request]:
        """Remove and return the unfinished requests whose deadline is before `now_s`, earliest first."""
        expired: list[Request] = []
        while self._heap and self._heap[0][0] < now_s:
            request = heapq.heappop(self._heap)[2]
            if not request.is_finished:
                expired.append(request)
        return expired
