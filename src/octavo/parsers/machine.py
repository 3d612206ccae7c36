"""GrammarParser: an OutputParser whose format is a generator over a Cursor.

Owns: driving the generator, what happens to text that turns out not to be a call.
Does not own: any format.
Invariants: text kept when the format fails becomes content, whole and in order, and reading goes on behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from octavo.base.errors import InvariantError
from octavo.parsers.cursor import BLANK, Cursor, EndOfTextError, MalformedError, Steps
from octavo.parsers.events import Event
from octavo.parsers.writer import EventWriter


class GrammarParser(ABC):
    """Subclasses say what text there is (`_read`), which ends when the text ends."""

    def __init__(self) -> None:
        self._cursor = Cursor()
        self._writer = EventWriter()
        self._steps: Steps[None] | None = None

    def feed(self, text: str) -> list[Event]:
        if self._cursor.is_closed:
            raise InvariantError("a parser was fed after its text had ended")
        self._cursor.feed(text)
        self._step()
        return self._writer.drain()

    def finish(self) -> list[Event]:
        if self._cursor.is_closed:
            return []
        self._cursor.close()
        self._step()
        self._writer.finish()
        return self._writer.drain()

    def _step(self) -> None:
        if self._steps is None:
            self._steps = self._read()
        is_done = next(self._steps, self._steps) is self._steps
        if is_done and not self._cursor.is_closed:
            raise InvariantError("a format's grammar ended before its text")

    @abstractmethod
    def _read(self) -> Steps[None]:
        """Read all of the text."""

    def _show(self, text: str) -> None:
        """This text is content."""
        self._writer.content(text)

    def _try_call(self, call: Steps[None]) -> Steps[bool]:
        """Read what may be a call, from where keeping began. False: it was none; what was kept is content now."""
        try:
            yield from call
        except MalformedError:
            self._show(self._cursor.take_kept())
            return False
        return True

    def _look_behind_call(self, *closers: str) -> Steps[str]:
        """Behind a call: the one of these that follows behind blanks, unread and still keeping; "" if none does.

        Blanks that nothing of the format follows are content. Where the text ends within a closer, that piece is
        dropped: it is not content and closes nothing.
        """
        cursor = self._cursor
        cursor.keep()
        try:
            yield from cursor.skip(BLANK)
            closer = yield from cursor.looking_at(*closers)
        except EndOfTextError:
            if cursor.drop_rest():
                cursor.take_kept()
            closer = ""
        except MalformedError:
            closer = ""
        if not closer:
            self._show(cursor.take_kept())
        return closer

    def _drop(self, marker: str) -> None:
        """Read a marker that has been looked at; it and what was kept are no content."""
        self._cursor.take(len(marker))
        self._cursor.take_kept()
