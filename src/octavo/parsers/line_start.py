"""For formats in which a call may begin without a marker, at the start of a line.

Owns: which bracket is the first thing in its line (LineFinder), and knowing where lines begin (LineParser).
Does not own: whether a call begins there.
"""

from __future__ import annotations

import re

from octavo.parsers.cursor import Steps, marker_pattern
from octavo.parsers.machine import GrammarParser

_LINE_BLANKS = re.compile(r"[ \t\r\n]*+")


class LineFinder:
    """Finds one of some markers anywhere, or an opener that only blanks precede in its line."""

    def __init__(self, opener: str, *markers: str) -> None:
        self._opener = opener
        self._pattern = marker_pattern(markers, rf"\n[ \t\r]*+(?P<opener>{re.escape(opener)})")
        self._is_line_blank = True

    def note(self, text: str) -> None:
        """This text stands in front of what is looked at next."""
        line = text.rpartition("\n")[2]
        is_blank = not line.strip(" \t\r")
        self._is_line_blank = is_blank and (self._is_line_blank or len(line) < len(text))

    def find(self, text: str, start: int) -> tuple[str, int]:
        """(marker or opener, its place), ("", the place up to which there is none)."""
        if self._is_line_blank:
            blanks = _LINE_BLANKS.match(text, start)
            if blanks and text.startswith(self._opener, blanks.end()):
                return self._opener, blanks.end()
        found = self._pattern.search(text, start)
        if found is None:
            return "", len(text)
        if found["opener"]:
            return self._opener, found.start("opener")
        return found["whole"] or "", found.start()


class LineParser(GrammarParser):
    """Passes on text until a call may begin."""

    def __init__(self, opener: str, *markers: str) -> None:
        super().__init__()
        self._finder = LineFinder(opener, *markers)

    def _show(self, text: str) -> None:
        self._finder.note(text)
        super()._show(text)

    def _pass_to_opener(self) -> Steps[str]:
        """What stands next, unread and from there on kept: the opener or a marker; "" at the end of the text."""
        found = yield from self._cursor.pass_until(self._finder, self._show)
        if found:
            self._cursor.keep()
        return found
