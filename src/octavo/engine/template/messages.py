"""What a front end and its template process say to each other, and how it is framed.

Owns: the messages, their sizes on the wire.   Does not own: either end.
A frame is four bytes of length, most significant first, and so many of msgpack. Values inside a conversation are a
client's JSON: any type, but no deeper than msgspec decodes.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

MAX_FRAME_BYTES = 64 << 20
"""Of a conversation, or of the text it becomes."""
LENGTH = struct.Struct(">I")


class RenderJob(msgspec.Struct, frozen=True, kw_only=True, tag="job", forbid_unknown_fields=True):
    """Render this conversation by this template."""

    template: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    add_generation_prompt: bool
    continue_final_message: bool
    variables: dict[str, Any]
    special_tokens: dict[str, str]


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process takes jobs. Its first frame."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True, tag="rendered"):
    """The text of the prompt."""

    text: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The template, or what it was given, is at fault."""

    message: str
    parameter: str | None


TemplateReply = Ready | Rendered | Refused


def frame(message: RenderJob | TemplateReply) -> bytes:
    """As it goes over the wire. Raises ValueError for one above MAX_FRAME_BYTES."""
    data = msgspec.msgpack.encode(message)
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError(f"{len(data)} bytes, at most {MAX_FRAME_BYTES}")
    return LENGTH.pack(len(data)) + data
