"""One item of an answer from its beginning to its end, with the events that a client sees of it.

Owns: ids of items and calls, the order of an item's events.   Does not own: when items begin and end (builder.py).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Literal

from octavo.server.api.logprobs import TokenLogprob
from octavo.server.responses.events import (
    ArgumentsDelta,
    ArgumentsDone,
    ItemEvent,
    PartEvent,
    StreamEvent,
    TextDelta,
    TextDone,
)
from octavo.server.responses.items import (
    FunctionCallItem,
    MessageItem,
    OutputItem,
    OutputText,
    ReasoningItem,
    ReasoningText,
    Status,
)

Emit = Callable[[StreamEvent], None]
"""What is done with an event. It must not be kept: its item changes later."""

TextKind = Literal["output_text", "reasoning_text"]
"""Of the one part of a message, or of what was thought; its events are named after it."""


def _added(emit: Emit, index: int, item: OutputItem) -> None:
    emit(ItemEvent(type="response.output_item.added", output_index=index, item=item))


def _done(emit: Emit, index: int, item: OutputItem) -> None:
    emit(ItemEvent(type="response.output_item.done", output_index=index, item=item))


class TextWriter:
    """A message, or what was thought."""

    status_when_left: Status = "completed"

    def __init__(self, emit: Emit, index: int, kind: TextKind) -> None:
        self.kind = kind
        self._emit = emit
        self._index = index
        token = secrets.token_hex(16)
        self._item = MessageItem(id=f"msg_{token}") if kind == "output_text" else ReasoningItem(id=f"rs_{token}")
        self._pieces: list[str] = []
        self._logprobs: list[TokenLogprob] = []

    def begin(self) -> None:
        _added(self._emit, self._index, self._item)
        self._emit_part("response.content_part.added", self._part())

    def add(self, text: str, logprobs: list[TokenLogprob]) -> None:
        """logprobs: of a message only."""
        self._pieces.append(text)
        event = TextDelta(
            type=f"response.{self.kind}.delta",
            item_id=self._item.id,
            output_index=self._index,
            content_index=0,
            delta=text,
        )
        if self.kind == "output_text":
            self._logprobs += logprobs
            event.logprobs = logprobs
        self._emit(event)

    def end(self, status: Status) -> MessageItem | ReasoningItem:
        part: Any = self._part()  # of the item's own kind
        event = TextDone(
            type=f"response.{self.kind}.done",
            item_id=self._item.id,
            output_index=self._index,
            content_index=0,
            text=part.text,
        )
        if isinstance(part, OutputText):
            event.logprobs = part.logprobs
        self._emit(event)
        self._emit_part("response.content_part.done", part)
        self._item.content, self._item.status = [part], status
        _done(self._emit, self._index, self._item)
        return self._item

    def _part(self) -> OutputText | ReasoningText:
        """All that was said so far."""
        text = "".join(self._pieces)
        return (
            OutputText(text=text, logprobs=self._logprobs) if self.kind == "output_text" else ReasoningText(text=text)
        )

    def _emit_part(self, event: str, part: OutputText | ReasoningText) -> None:
        self._emit(PartEvent(type=event, item_id=self._item.id, output_index=self._index, content_index=0, part=part))


class CallWriter:
    """A call."""

    status_when_left: Status = "incomplete"
    """The model did not close it."""

    def __init__(self, emit: Emit, index: int, name: str) -> None:
        self._emit = emit
        self._index = index
        token = secrets.token_hex(16)
        self._item = FunctionCallItem(id=f"fc_{token}", call_id=f"call_{token}", name=name)
        self._pieces: list[str] = []

    def begin(self) -> None:
        _added(self._emit, self._index, self._item)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._emit(
            ArgumentsDelta(
                type="response.function_call_arguments.delta",
                item_id=self._item.id,
                output_index=self._index,
                delta=text,
            )
        )

    def end(self, status: Status) -> FunctionCallItem:
        item = self._item
        item.arguments, item.status = "".join(self._pieces), status
        self._emit(
            ArgumentsDone(
                type="response.function_call_arguments.done",
                item_id=item.id,
                output_index=self._index,
                name=item.name,
                arguments=item.arguments,
            )
        )
        _done(self._emit, self._index, item)
        return item
