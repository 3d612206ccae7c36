"""Reasoning as tokens: where it ends, and when its budget is spent.

Owns: markers of one and more tokens in a growing output.   Does not own: masks, texts, which markers a model has.
Invariant: everything is a function of the output tokens alone, so it can be built again from them at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class MarkerScan:
    """Finds a sequence of tokens in an output that is fed token by token."""

    def __init__(self, marker: Sequence[int]) -> None:
        self._marker = list(marker)
        self._tail: deque[int] = deque(maxlen=len(self._marker))

    def feed(self, token_id: int) -> bool:
        """Take the next token. True: the marker ends with it."""
        self._tail.append(token_id)
        return list(self._tail) == self._marker

    @property
    def num_matched(self) -> int:
        """How much of the marker, short of all of it, the output ends with."""
        tail = list(self._tail)
        for num in range(min(len(tail), len(self._marker) - 1), 0, -1):
            if tail[-num:] == self._marker[:num]:
                return num
        return 0

    def clear(self) -> None:
        """Nothing before counts any more."""
        self._tail.clear()


class ThinkingBudget:
    """Counts the tokens of reasoning; once `budget` are written, the end marker's tokens are the only ones allowed.

    start: reasoning begins behind these tokens; None: with the output. It may begin and end more than once, and all of
    it counts. An end marker that has begun by itself is completed, not begun again.
    """

    def __init__(self, budget: int, *, start: Sequence[int] | None, end: Sequence[int]) -> None:
        self._budget = budget
        self._start = MarkerScan(start) if start else None
        self._end_ids = list(end)
        self._end = MarkerScan(end)
        self._is_open = start is None
        self._num_tokens = 0

    def feed(self, token_id: int) -> None:
        """Take the next token of the output."""
        if self._is_open:
            self._num_tokens += 1
            if self._end.feed(token_id):
                self._is_open = False
        elif self._start is not None and self._start.feed(token_id):
            self._is_open = True
            self._start.clear()
            self._end.clear()

    @property
    def forced_token(self) -> int | None:
        """The only token that may come next; None: the budget allows any."""
        if not self._is_open or self._num_tokens < self._budget:
            return None
        return self._end_ids[self._end.num_matched]
