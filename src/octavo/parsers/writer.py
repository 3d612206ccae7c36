"""EventWriter: events in order, neighbours joined, and the rule about white space around calls.

The rule, for every format. Content is what the model wrote, but for runs of at most MAX_BLANK_CHARS blanks (space, tab,
line feed, carriage return) that touch a call: a run directly before a call is dropped, and so is a run directly behind
one where another call or the end of the text follows. Longer runs are content.

Owns: numbering calls, that rule, joining events.
Does not own: what is a call.
Invariants: at most MAX_BLANK_CHARS are held; events keep the order of `events.py`.
"""

from __future__ import annotations

from octavo.parsers.cursor import BLANKS
from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Event, Reasoning

MAX_BLANK_CHARS = 64


class TrailingBlanks:
    """Holds the blanks at the end of a text until it is known what follows. A run over the limit is text."""

    __slots__ = ("_held", "_is_long")

    def __init__(self) -> None:
        self._held = ""
        self._is_long = False

    def push(self, text: str) -> str:
        """The text that is now known to be followed by text, or not to be blank."""
        solid = text.rstrip(BLANKS)
        shown = ""
        if solid:
            shown, self._held, self._is_long = self._held + solid, "", False
        run = text[len(solid) :]
        if self._is_long:
            return shown + run
        self._held += run
        if len(self._held) > MAX_BLANK_CHARS:
            shown, self._held, self._is_long = shown + self._held, "", True
        return shown

    def drop(self) -> None:
        """What follows swallows the run."""
        self._held, self._is_long = "", False

    def flush(self) -> str:
        """What follows makes the run text."""
        held, self._held = self._held, ""
        return held


class EventWriter:
    """Collects the events of one parser."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._parts: list[str] = []
        self._kind: type[Content] | type[Reasoning] | type[CallArguments] = Content
        self._blanks = TrailingBlanks()
        self._is_behind_call = False
        self._index = -1

    def content(self, text: str) -> None:
        shown = self._blanks.push(text)
        if shown:
            self._is_behind_call = False
            self._add(Content, shown)

    def reasoning(self, text: str) -> None:
        if text:
            self._add(Reasoning, text)

    def begin_call(self, name: str) -> None:
        self._blanks.drop()
        self._close_part()
        self._index += 1
        self._events.append(CallBegun(self._index, name))
        self._is_behind_call = True

    def arguments(self, text: str) -> None:
        if text:
            self._add(CallArguments, text)

    def end_call(self) -> None:
        self._close_part()
        self._events.append(CallEnded(self._index))

    def finish(self) -> None:
        """The text has ended."""
        held = self._blanks.flush()
        if held and not self._is_behind_call:
            self._add(Content, held)

    def drain(self) -> list[Event]:
        """The events since the last drain."""
        self._close_part()
        events, self._events = self._events, []
        return events

    def _add(self, kind: type[Content] | type[Reasoning] | type[CallArguments], text: str) -> None:
        if kind is not self._kind:
            self._close_part()
            self._kind = kind
        self._parts.append(text)

    def _close_part(self) -> None:
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts = []
        if self._kind is CallArguments:
            self._events.append(CallArguments(self._index, text))
        else:
            self._events.append(Content(text) if self._kind is Content else Reasoning(text))
