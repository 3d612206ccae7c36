"""Events of a streamed answer, and how they are written.

Owns: names and fields of events, their numbers.   Does not own: their order (builder.py).
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from octavo.server.api.logprobs import TokenLogprob
from octavo.server.responses.items import OutputItem, OutputText, ReasoningText, Response

_ENCODE = msgspec.json.Encoder().encode


class StreamEvent(msgspec.Struct, kw_only=True):
    """`sequence_number` is set when the event is written."""

    type: str
    sequence_number: int = 0


class ResponseEvent(StreamEvent, kw_only=True):
    """response.created, .in_progress, .completed, .incomplete, .failed: all of the answer so far."""

    response: Response


class ItemEvent(StreamEvent, kw_only=True):
    """response.output_item.added, .done."""

    output_index: int
    item: OutputItem


class PartEvent(StreamEvent, kw_only=True):
    """response.content_part.added, .done."""

    item_id: str
    output_index: int
    content_index: int
    part: OutputText | ReasoningText


class TextDelta(StreamEvent, kw_only=True):
    """response.output_text.delta, response.reasoning_text.delta; logprobs: of text for the reader only."""

    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: list[TokenLogprob] | UnsetType = UNSET


class TextDone(StreamEvent, kw_only=True):
    """response.output_text.done, response.reasoning_text.done: the whole text of a part."""

    item_id: str
    output_index: int
    content_index: int
    text: str
    logprobs: list[TokenLogprob] | UnsetType = UNSET


class ArgumentsDelta(StreamEvent, kw_only=True):
    """response.function_call_arguments.delta."""

    item_id: str
    output_index: int
    delta: str


class ArgumentsDone(StreamEvent, kw_only=True):
    """response.function_call_arguments.done: all arguments of a call."""

    item_id: str
    output_index: int
    name: str
    arguments: str


class ErrorEvent(StreamEvent, kw_only=True):
    """error: what ends the stream."""

    code: str | None
    message: str
    param: str | None


class EventBuffer:
    """Events as they are sent, numbered from 0, until somebody takes them."""

    def __init__(self) -> None:
        self._num_written = 0
        self._parts: list[bytes] = []

    def write(self, event: StreamEvent) -> None:
        event.sequence_number = self._num_written
        self._num_written += 1
        self._parts += (b"event: ", event.type.encode(), b"\ndata: ", _ENCODE(event), b"\n\n")

    @property
    def is_begun(self) -> bool:
        """True: something was written."""
        return self._num_written > 0

    def take(self) -> bytes:
        """What was written since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
