"""Contents that clients send as one text or in parts.

Owns: what a part must look like, and refusing what is no text.
Does not own: which kinds of parts an API has, what becomes of the texts.
Errors begin with the place in the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo.server.errors import invalid_value, shown

OPENAI_KINDS: Mapping[str, str] = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Chat requests and responses know the same kinds, since clients send back in one what they got in the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextParts:
    """Those of one API."""

    kinds: Mapping[str, str]
    """Type of a part -> the field that holds its text."""
    param: str
    """What errors name as the field at fault."""
    may_be_bare: bool = False
    """A text in place of a part is one."""

    def read(self, content: object, where: str) -> str:
        """The whole text; parts are joined by newlines. Raises ApiError."""
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise invalid_value(f"{where}={shown(content)}: must be a text or a list of parts", self.param)
        return "\n".join(self.read_part(part, f"{where}[{index}]") for index, part in enumerate(content))

    def read_part(self, part: object, where: str) -> str:
        """The text of one part. Raises ApiError."""
        if self.may_be_bare and isinstance(part, str):
            return part
        kind = part.get("type") if isinstance(part, dict) else None
        name = self.kinds.get(kind) if isinstance(kind, str) else None
        if name is None or not isinstance(part, dict):
            raise invalid_value(f"{where}.type={shown(kind)}: this model reads text only", self.param)
        return read_text(part, name, where, self.param)


def read_text(item: Mapping[str, Any], name: str, where: str, param: str) -> str:
    """A field that must hold a text. Raises ApiError."""
    value = item.get(name)
    if not isinstance(value, str):
        raise invalid_value(f"{where}.{name}={shown(value)}: must be a text", param)
    return value
