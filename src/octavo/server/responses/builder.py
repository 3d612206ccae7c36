"""From what the model said to the items of an answer, with an event for each step.

Owns: where an item begins and ends.   Does not own: events and ids of an item (writers.py), parsing.
Invariant: the items are the same whether anybody listens to the events or not, and however what was said was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Event, Reasoning
from octavo.server.api.logprobs import TokenLogprob
from octavo.server.responses.items import OutputItem, Status
from octavo.server.responses.writers import CallWriter, Emit, TextKind, TextWriter


class AnswerBuilder:
    """Of one answer. `items` are those that have ended."""

    def __init__(self, emit: Emit) -> None:
        self.items: list[OutputItem] = []
        self._emit = emit
        self._open: TextWriter | CallWriter | None = None
        self._logprobs: list[TokenLogprob] = []
        """Of tokens whose text has not come yet."""

    def take(self, events: Iterable[Event], logprobs: Sequence[TokenLogprob] = ()) -> None:
        """What is new. logprobs: only where all of an answer is text for the reader."""
        self._logprobs += logprobs
        for event in events:
            match event:
                case Content(text):
                    self._text("output_text").add(text, self._take_logprobs())
                case Reasoning(text):
                    self._text("reasoning_text").add(text, [])
                case CallBegun(_, name):
                    self._call(name)
                case CallArguments(_, text):
                    assert isinstance(self._open, CallWriter)
                    self._open.add(text)
                case CallEnded():
                    self._end("completed")

    def finish(self, *, is_cut: bool) -> None:
        """There is no more. An answer without anything is a message without text."""
        if self._logprobs:
            self._text("output_text").add("", self._take_logprobs())
        elif self._open is None and not self.items:
            self._text("output_text")
        if self._open is not None:
            self._end("incomplete" if is_cut else self._open.status_when_left)

    def _text(self, kind: TextKind) -> TextWriter:
        if not isinstance(self._open, TextWriter) or self._open.kind != kind:
            self._leave()
            self._open = writer = TextWriter(self._emit, len(self.items), kind)
            writer.begin()
            return writer
        return self._open

    def _call(self, name: str) -> None:
        self._leave()
        self._open = CallWriter(self._emit, len(self.items), name)
        self._open.begin()

    def _leave(self) -> None:
        if self._open is not None:
            self._end(self._open.status_when_left)

    def _end(self, status: Status) -> None:
        assert self._open is not None
        self.items.append(self._open.end(status))
        self._open = None

    def _take_logprobs(self) -> list[TokenLogprob]:
        taken, self._logprobs = self._logprobs, []
        return taken
