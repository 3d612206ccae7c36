"""From what the model said to the items of an answer, with an event for each step.

Owns: where an item begins and ends.   Does not own: events and ids of an item (writers.py), parsing.
Invariant: the items are the same whether anybody listens to the events or not, and however what was said was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Event, Reasoning
from octavo.server.api.logprobs import TokenLogprob
from octavo.server.responses.items import OutputItem, Status
from octavo.server.responses.writers import CallWriter, Emit, MessageWriter, ReasoningWriter


class AnswerBuilder:
    """Of one answer. `items` are those that have ended."""

    def __init__(self, emit: Emit) -> None:
        self.items: list[OutputItem] = []
        self._emit = emit
        self._open: MessageWriter | ReasoningWriter | CallWriter | None = None
        self._logprobs: list[TokenLogprob] = []
        """Of tokens whose text has not come yet."""

    def take(self, events: Iterable[Event], logprobs: Sequence[TokenLogprob] = ()) -> None:
        """What is new. logprobs: only where all of an answer is text for the reader."""
        self._logprobs += logprobs
        for event in events:
            match event:
                case Content(text):
                    self._message().add(text, self._take_logprobs())
                case Reasoning(text):
                    self._reasoning().add(text)
                case CallBegun(_, name):
                    self._begin(CallWriter(self._emit, name))
                case CallArguments(_, text):
                    assert isinstance(self._open, CallWriter)
                    self._open.add(text)
                case CallEnded():
                    self._end("completed")

    def finish(self, *, is_cut: bool) -> None:
        """There is no more. An answer without anything is a message without text."""
        if self._logprobs:
            self._message().add("", self._take_logprobs())
        elif self._open is None and not self.items:
            self._message()
        if self._open is not None:
            self._end("incomplete" if is_cut else self._open.status_when_left)

    def _message(self) -> MessageWriter:
        if not isinstance(self._open, MessageWriter):
            writer = MessageWriter(self._emit)
            self._begin(writer)
            return writer
        return self._open

    def _reasoning(self) -> ReasoningWriter:
        if not isinstance(self._open, ReasoningWriter):
            writer = ReasoningWriter(self._emit)
            self._begin(writer)
            return writer
        return self._open

    def _begin(self, writer: MessageWriter | ReasoningWriter | CallWriter) -> None:
        if self._open is not None:
            self._end(self._open.status_when_left)
        self._open = writer
        writer.begin(len(self.items))

    def _end(self, status: Status) -> None:
        assert self._open is not None
        self.items.append(self._open.end(status))
        self._open = None

    def _take_logprobs(self) -> list[TokenLogprob]:
        taken, self._logprobs = self._logprobs, []
        return taken
