"""Stop strings, found while the text is still arriving in pieces.

Owns: where the text ends, and how much of it may already be shown.   Does not own: text (detokenize.py).
Invariants: the outcome does not depend on how the text was cut into pieces; what `feed` has released is never taken
back; held back is only what is a proper prefix of a stop string, so at most max(len) - 1 characters.

The match that *ends* first wins; among those that end at the same character, the one that starts first. Each stop
string is an automaton that eats one character at a time.
Source: Knuth, Morris, Pratt, "Fast pattern matching in strings" (1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopMatch:
    """A stop string was found."""

    stop: str


def _failure_table(pattern: str) -> list[int]:
    """table[k]: length of the longest proper prefix of `pattern` that is a suffix of pattern[:k]."""
    table = [0, 0]
    length = 0
    for char in pattern[1:]:
        while length and pattern[length] != char:
            length = table[length]
        if pattern[length] == char:
            length += 1
        table.append(length)
    return table


class StopMatcher:
    """Finds the first of several stop strings in a text that is fed piece by piece.

    `feed` returns the text that may be shown now and, once, the match. After a match nothing more may be fed.
    Cost: one comparison a character and stop string.
    """

    def __init__(self, stops: Sequence[str], *, include_stop: bool = False) -> None:
        self._stops = tuple(stops)
        self._tables = [_failure_table(stop) for stop in self._stops]
        self._matched = [0] * len(self._stops)
        self._include_stop = include_stop
        self._held = ""

    def feed(self, text: str, *, may_stop: bool = True) -> tuple[str, StopMatch | None]:
        """Take the next piece. With may_stop=False a stop string that ends inside this piece is passed over.

        Returns (text to show, match). On a match the text is cut exactly before (or, with include_stop, behind) it.
        """
        if not self._stops:
            return text, None
        for position, char in enumerate(text):
            found = self._advance(char)
            if found is not None and may_stop:
                known = self._held + text[: position + 1]
                self._held = ""
                return (known if self._include_stop else known[: len(known) - len(found)]), StopMatch(found)
        known = self._held + text
        num_shown = len(known) - (0 if self._include_stop else max(self._matched))
        self._held = known[num_shown:]
        return known[:num_shown], None

    def flush(self) -> str:
        """The text has ended: what was held back."""
        held, self._held = self._held, ""
        return held

    def _advance(self, char: str) -> str | None:
        """Move every automaton by one character; the longest stop string that ends here, if any."""
        found: str | None = None
        for index, (stop, table) in enumerate(zip(self._stops, self._tables, strict=True)):
            length = self._matched[index]
            while length and stop[length] != char:
                length = table[length]
            if stop[length] == char:
                length += 1
            if length == len(stop):
                length = table[length]
                if found is None or len(stop) > len(found):
                    found = stop
            self._matched[index] = length
        return found
