"""What a front end and its template process say to each other.

Owns: the messages.   Does not own: either end, how a message is framed (helper/frames.py).
Values inside a conversation are a client's JSON: any type, but no deeper than msgspec decodes.
"""

from __future__ import annotations

from typing import Any

import msgspec


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
