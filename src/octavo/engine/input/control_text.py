"""Text of messages that spells a control token stays text.

Owns: how that is done for any chat template.   Does not own: which texts are control tokens' (the tokenizer's).
A template puts messages and control tokens into one text, where they can no longer be told apart. So what a message
spells is broken by a mark before the template runs, and the rendered text is tokenized in the pieces between marks:
no piece holds a control token that the template did not write.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any


class ControlTextGuard:
    """For one conversation. texts: those of the control tokens; empty: messages may spell them."""

    def __init__(self, texts: Sequence[str]) -> None:
        breakable = sorted((text for text in texts if len(text) > 1), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, breakable))) if breakable else None
        self._mark = f"\ufdd0{secrets.token_hex(8)}\ufdd1"

    def seal(self, value: Any) -> Any:
        """A copy of messages, tools or variables in which no text spells a control token."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._break(value)
        if isinstance(value, Mapping):
            return {name: self.seal(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.seal(item) for item in value]
        return value

    def _break(self, text: str) -> str:
        """A mark behind the first character of each; they may overlap."""
        pieces, start, position = [], 0, 0
        while self._pattern is not None and (match := self._pattern.search(text, position)):
            position = match.start() + 1
            pieces.append(text[start:position])
            start = position
        return self._mark.join([*pieces, text[start:]])

    def pieces(self, rendered: str) -> list[str]:
        """The rendered text in parts that are to be tokenized one by one; joined, they are what it says."""
        return rendered.split(self._mark)
