"""One item of an answer from its beginning to its end, with the events that a client sees of it.

Owns: ids of items and calls, the order of an item's events.   Does not own: when items begin and end (builder.py).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

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


def _added(emit: Emit, index: int, item: OutputItem) -> None:
    emit(ItemEvent(type="response.output_item.added", output_index=index, item=item))


def _done(emit: Emit, index: int, item: OutputItem) -> None:
    emit(ItemEvent(type="response.output_item.done", output_index=index, item=item))


class _PartWriter:
    """The one part of an item that holds text."""

    def __init__(self, emit: Emit, kind: str, item_id: str, index: int) -> None:
        self._emit = emit
        self._kind = kind
        self._item_id = item_id
        self._index = index
        self._pieces: list[str] = []

    def begin(self, part: OutputText | ReasoningText) -> None:
        self._emit_part("response.content_part.added", part)

    def add(self, text: str, logprobs: list[TokenLogprob] | None) -> None:
        self._pieces.append(text)
        event = TextDelta(
            type=f"response.{self._kind}.delta",
            item_id=self._item_id,
            output_index=self._index,
            content_index=0,
            delta=text,
        )
        if logprobs is not None:
            event.logprobs = logprobs
        self._emit(event)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def end(self, part: OutputText | ReasoningText) -> None:
        event = TextDone(
            type=f"response.{self._kind}.done",
            item_id=self._item_id,
            output_index=self._index,
            content_index=0,
            text=part.text,
        )
        if isinstance(part, OutputText):
            event.logprobs = part.logprobs
        self._emit(event)
        self._emit_part("response.content_part.done", part)

    def _emit_part(self, kind: str, part: OutputText | ReasoningText) -> None:
        self._emit(PartEvent(type=kind, item_id=self._item_id, output_index=self._index, content_index=0, part=part))


class MessageWriter:
    """A message."""

    status_when_left: Status = "completed"

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._item = MessageItem(id=f"msg_{secrets.token_hex(16)}")
        self._logprobs: list[TokenLogprob] = []

    def begin(self, index: int) -> None:
        self._index = index
        self._part = _PartWriter(self._emit, "output_text", self._item.id, index)
        _added(self._emit, index, self._item)
        self._part.begin(OutputText(text=""))

    def add(self, text: str, logprobs: list[TokenLogprob]) -> None:
        self._logprobs += logprobs
        self._part.add(text, logprobs)

    def end(self, status: Status) -> MessageItem:
        part = OutputText(text=self._part.text, logprobs=self._logprobs)
        self._part.end(part)
        self._item.content, self._item.status = [part], status
        _done(self._emit, self._index, self._item)
        return self._item


class ReasoningWriter:
    """What was thought."""

    status_when_left: Status = "completed"

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._item = ReasoningItem(id=f"rs_{secrets.token_hex(16)}")

    def begin(self, index: int) -> None:
        self._index = index
        self._part = _PartWriter(self._emit, "reasoning_text", self._item.id, index)
        _added(self._emit, index, self._item)
        self._part.begin(ReasoningText(text=""))

    def add(self, text: str) -> None:
        self._part.add(text, None)

    def end(self, status: Status) -> ReasoningItem:
        part = ReasoningText(text=self._part.text)
        self._part.end(part)
        self._item.content, self._item.status = [part], status
        _done(self._emit, self._index, self._item)
        return self._item


class CallWriter:
    """A call."""

    status_when_left: Status = "incomplete"
    """The model did not close it."""

    def __init__(self, emit: Emit, name: str) -> None:
        self._emit = emit
        token = secrets.token_hex(16)
        self._item = FunctionCallItem(id=f"fc_{token}", call_id=f"call_{token}", name=name)
        self._pieces: list[str] = []

    def begin(self, index: int) -> None:
        self._index = index
        _added(self._emit, index, self._item)

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
