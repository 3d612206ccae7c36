"""An ordered set of requests: the waiting ones and the running ones, each in the policy's order.

Owns: membership and order. Does not own: what the order means (`policy.py`).
Invariant: sorted by `order_key`, which never changes while a request is here and is unique.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from octavo.base.errors import InvariantError
from octavo.core.request import Request


class RequestQueue:
    """Requests sorted by `order_key`. Adding and removing cost O(log n) comparisons and one block move."""

    def __init__(self) -> None:
        self._keys: list[tuple[float, ...]] = []
        self._requests: list[Request] = []

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def __contains__(self, request: Request) -> bool:
        idx = bisect_left(self._keys, request.order_key)
        return idx < len(self._requests) and self._requests[idx] is request

    @property
    def in_order(self) -> list[Request]:
        """The requests, first to last; to be read, not changed."""
        return self._requests

    def position(self, request: Request) -> int:
        """How many are ahead of it. Cost: O(log n)."""
        return bisect_left(self._keys, request.order_key)

    def add(self, request: Request) -> None:
        """Put a request at its place. Raises InvariantError when it is already there."""
        idx = bisect_left(self._keys, request.order_key)
        if idx < len(self._keys) and self._keys[idx] == request.order_key:
            raise InvariantError(f"{request.request_id}: already queued, or its order key is not unique")
        self._keys.insert(idx, request.order_key)
        self._requests.insert(idx, request)

    def remove(self, request: Request) -> None:
        """Take a request out. Raises InvariantError when it is not there."""
        idx = bisect_left(self._keys, request.order_key)
        if idx == len(self._requests) or self._requests[idx] is not request:
            raise InvariantError(f"{request.request_id}: not in this queue")
        del self._keys[idx]
        del self._requests[idx]
