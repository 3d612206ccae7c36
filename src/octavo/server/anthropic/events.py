"""The events of a streamed answer, and their bytes.

Owns: forms, names and frames of events.   Does not own: which come, in which order (blocks.py, stream.py).
"""

from __future__ import annotations

import msgspec

from octavo.server.anthropic.message_types import Block, Message, MessageErrorResponse, MessageUsage, StopReason

_ENCODE = msgspec.json.Encoder().encode


class TextDelta(msgspec.Struct, frozen=True, tag_field="type", tag="text_delta"):
    """More of a text block. Never empty, like the others."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag_field="type", tag="thinking_delta"):
    """More of a thinking block."""

    thinking: str


class SignatureDelta(msgspec.Struct, frozen=True, tag_field="type", tag="signature_delta"):
    """The last of a thinking block."""

    signature: str


class InputJsonDelta(msgspec.Struct, frozen=True, tag_field="type", tag="input_json_delta"):
    """More of the JSON text of a call's input."""

    partial_json: str


Delta = TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class BlockStart(msgspec.Struct, frozen=True, tag_field="type", tag="content_block_start"):
    """Block `index` begins, empty."""

    index: int
    content_block: Block


class BlockDelta(msgspec.Struct, frozen=True, tag_field="type", tag="content_block_delta"):
    """More of block `index`, which is the last that began."""

    index: int
    delta: Delta


class BlockStop(msgspec.Struct, frozen=True, tag_field="type", tag="content_block_stop"):
    """Block `index` is whole."""

    index: int


BlockEvent = BlockStart | BlockDelta | BlockStop


class MessageStart(msgspec.Struct, frozen=True, tag_field="type", tag="message_start"):
    """The first event: the message without content and end."""

    message: Message


class MessageEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Why the message ended."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(msgspec.Struct, frozen=True, tag_field="type", tag="message_delta"):
    """The end of the message, and all tokens that it took."""

    delta: MessageEnd
    usage: MessageUsage


class MessageStop(msgspec.Struct, frozen=True, tag_field="type", tag="message_stop"):
    """The last event."""


class Ping(msgspec.Struct, frozen=True, tag_field="type", tag="ping"):
    """Nothing is new."""


StreamEvent = BlockEvent | MessageStart | MessageDelta | MessageStop | Ping | MessageErrorResponse


def frame(event: StreamEvent) -> bytes:
    """As a server-sent event named after its type."""
    name = type(event).__struct_config__.tag
    assert isinstance(name, str)
    return b"event: " + name.encode() + b"\ndata: " + _ENCODE(event) + b"\n\n"
