"""How much waits: requests, and the prompt tokens they have.

Owns: the two numbers.   Does not own: what is done about them.
"""

from __future__ import annotations

from collections.abc import Callable

QueueListener = Callable[[int, int], None]
"""Called with the change of (requests, tokens)."""


class QueueCount:
    """Of one stage of one front end; `on_change` may sum up over many."""

    def __init__(self, on_change: QueueListener | None = None) -> None:
        self.num_requests = 0
        self.num_tokens = 0
        self._on_change = on_change

    def enter(self, num_tokens: int) -> None:
        """A request waits."""
        self._change(1, num_tokens)

    def leave(self, num_tokens: int) -> None:
        """It waits no more."""
        self._change(-1, -num_tokens)

    def _change(self, num_requests: int, num_tokens: int) -> None:
        self.num_requests += num_requests
        self.num_tokens += num_tokens
        if self._on_change is not None:
            self._on_change(num_requests, num_tokens)
