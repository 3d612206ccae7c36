"""One parser for one text: reasoning first, tools only in content, and only the first call unless several are wanted.

Owns: putting parsers in a row.
Does not own: any format.
"""

from __future__ import annotations

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Event
from octavo.parsers.interface import OutputParser


class PlainParser:
    """Everything is content."""

    def feed(self, text: str) -> list[Event]:
        return [Content(text)] if text else []

    def finish(self) -> list[Event]:
        return []


class ParserRow:
    """The content of the first parser is the text of the second."""

    def __init__(self, first: OutputParser, second: OutputParser) -> None:
        self._first = first
        self._second = second

    def feed(self, text: str) -> list[Event]:
        return self._pass(self._first.feed(text))

    def finish(self) -> list[Event]:
        return self._pass(self._first.finish()) + self._second.finish()

    def _pass(self, events: list[Event]) -> list[Event]:
        passed: list[Event] = []
        for event in events:
            passed += self._second.feed(event.text) if isinstance(event, Content) else [event]
        return passed


class FirstCallOnly:
    """Drops every call but the first; content stays."""

    def __init__(self, parser: OutputParser) -> None:
        self._parser = parser

    def feed(self, text: str) -> list[Event]:
        return _keep_first(self._parser.feed(text))

    def finish(self) -> list[Event]:
        return _keep_first(self._parser.finish())


def _keep_first(events: list[Event]) -> list[Event]:
    return [
        event for event in events if not (isinstance(event, CallBegun | CallArguments | CallEnded) and event.index > 0)
    ]
