"""Cursor: text that arrives in pieces, read as if it were whole.

Grammars are written as generators: they read, and yield where the answer depends on text that has not come.

Owns: waiting, looking ahead, keeping what was read until it is known to be a call.
Does not own: any format, events.
Invariants: no reader's answer depends on where pieces end. Each character is consumed once, in order; what was consumed
is never read again, so a parser is linear. Kept text never exceeds MAX_HELD_CHARS: reading on raises MalformedError, at
exactly that character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A reader: yields when it needs more text, returns T."""

MAX_HELD_CHARS = 1 << 16
"""Of a text that may be a call and is not known to be one: longer ones are content."""
BLANKS = " \t\r\n"
BLANK = re.compile(r"[ \t\r\n]+")


class MalformedError(Exception):
    """The text is not what the format asks for. Never leaves this folder."""


class EndOfTextError(MalformedError):
    """The text ended where the format goes on."""


class Searcher(Protocol):
    """Finds where free text ends."""

    def find(self, text: str, start: int) -> tuple[str, int]:
        """(marker, its place), ("", the place up to which there is none, whatever text comes)."""
        ...


class Cursor:
    """The unread text and, while keeping, what was read."""

    __slots__ = ("_at", "_kept", "_num_kept", "_text", "is_closed")

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._kept: list[str] | None = None
        self._num_kept = 0
        self.is_closed = False

    def feed(self, text: str) -> None:
        """More text has come. Cost: its length and what is unread, which readers keep below a marker's length."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def close(self) -> None:
        """No more will come."""
        self.is_closed = True

    def keep(self) -> None:
        """From here on, remember what is read."""
        self._kept = []
        self._num_kept = 0

    @property
    def num_kept(self) -> int:
        """Characters read since `keep`."""
        return self._num_kept

    def peek_kept(self) -> str:
        """What was read since `keep`, which goes on."""
        return "".join(self._kept or ())

    def take_kept(self) -> str:
        """What was read since `keep`, which ends."""
        kept, self._kept = "".join(self._kept or ()), None
        return kept

    def peek(self) -> Steps[str]:
        """The next character; "" at the end. Reads nothing."""
        while self._at >= len(self._text):
            if self.is_closed:
                return ""
            yield
        return self._text[self._at]

    def take(self, num_chars: int) -> str:
        """Read that many characters, which have been looked at."""
        assert self._at + num_chars <= len(self._text)
        return self._advance(self._at + num_chars)

    def drop_rest(self) -> bool:
        """Read all that has come, without keeping it. False: there was nothing."""
        has_rest = self._at < len(self._text)
        self._at = len(self._text)
        return has_rest

    def looking_at(self, *markers: str) -> Steps[str]:
        """The one of these with which the unread text begins; "" if none does. Reads nothing.

        No marker may begin with another. Raises EndOfTextError where the text ends within one.
        """
        while True:
            num_unread = len(self._text) - self._at
            is_partial = False
            for marker in markers:
                if self._text.startswith(marker, self._at):
                    return marker
                is_partial |= num_unread < len(marker) and marker.startswith(self._text[self._at :])
            if not is_partial:
                return ""
            if self.is_closed:
                raise EndOfTextError
            yield

    def expect(self, marker: str) -> Steps[None]:
        """Read this. Raises MalformedError where something else follows."""
        if not (yield from self.looking_at(marker)):
            raise MalformedError
        self.take(len(marker))

    def skip(self, run: re.Pattern[str]) -> Steps[str]:
        """Read characters of a class (`[...]+`) up to the first that is not of it, or the end."""
        parts = []
        while True:
            found = run.match(self._text, self._at)
            if found:
                parts.append(self._advance(found.end()))
            if self._at < len(self._text) or self.is_closed:
                return "".join(parts)
            yield

    def pass_on(self, run: re.Pattern[str], sink: Callable[[str], None]) -> Steps[None]:
        """As `skip`, but what is read goes to the sink as it comes."""
        while True:
            found = run.match(self._text, self._at)
            if found:
                sink(self._advance(found.end()))
            if self._at < len(self._text) or self.is_closed:
                return
            yield

    def pass_until(self, finder: Searcher, sink: Callable[[str], None]) -> Steps[str]:
        """Pass text on up to the first marker, which is left unread and returned; "" when the text ends without one."""
        while True:
            marker, start = finder.find(self._text, self._at)
            if start > self._at:
                sink(self._advance(start))
            if marker:
                return marker
            if self.is_closed:
                if self._at < len(self._text):
                    sink(self._advance(len(self._text)))
                return ""
            yield

    def _advance(self, end: int) -> str:
        start = self._at
        if self._kept is None:
            self._at = end
            return self._text[start:end]
        limit = start + MAX_HELD_CHARS - self._num_kept
        self._at = min(end, limit)
        piece = self._text[start : self._at]
        self._kept.append(piece)
        self._num_kept += len(piece)
        if end > limit:
            raise MalformedError
        return piece


class Finder:
    """Finds the first of some markers, or where one may have begun at the end of the text so far.

    No marker may begin with another. At one place a whole marker wins; of two places the first, as soon as it is known
    whether a marker stands there.
    """

    __slots__ = ("_pattern",)

    def __init__(self, *markers: str) -> None:
        self._pattern = marker_pattern(markers)

    def find(self, text: str, start: int) -> tuple[str, int]:
        """(marker, its place), ("", the place up to which there is none)."""
        found = self._pattern.search(text, start)
        if found is None:
            return "", len(text)
        return found["whole"] or "", found.start()


def marker_pattern(markers: Sequence[str], other: str = "") -> re.Pattern[str]:
    """Matches a whole marker (group "whole"), something else, or at the end of the text what a marker begins with.

    One pattern, so that what a search passes over is passed over for good.
    """
    whole = "|".join(re.escape(marker) for marker in markers)
    partial = {marker[:size] for marker in markers for size in range(1, len(marker))}
    cut = "|".join(re.escape(part) for part in sorted(partial, key=len, reverse=True))
    return re.compile("|".join(filter(None, [f"(?P<whole>{whole})", other, rf"(?:{cut})\Z" if cut else ""])))
