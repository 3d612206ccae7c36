"""Text that spells a special token and is none: how it is written where a grammar leaves no choice.

Owns: telling such text from the token, the first token it is written with.   Does not own: masks (matcher.py).
The library cuts text that must come into tokens as the tokenizer does, for which the text `<|im_end|>` is the token of
that name. That token would end the text, and the grammar, which wants characters, does not take it.
"""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLMatcher, LLTokenizer


class SpelledTokens:
    """Of one tokenizer."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer

    def is_spelled(self, native: LLMatcher, token_id: int) -> bool:
        """The grammar wants this special token's text, and not the token."""
        if not self._tokenizer.is_special_token(token_id):
            return False
        wanted = native.compute_ff_bytes()
        return bool(wanted) and not wanted.startswith(_as_token(token_id))

    def first_token(self, token_id: int) -> int:
        """The one to begin the text of a special token with."""
        text = self._tokenizer.decode_str([token_id]).encode()
        first: int = self._tokenizer.tokenize_bytes(text[:-1])[0]
        return first

    def without_spelled(self, native: LLMatcher, token_ids: Sequence[int]) -> list[int]:
        """Tokens that must come, up to the first that is only text in the grammar."""
        is_special = self._tokenizer.is_special_token
        if not any(map(is_special, token_ids)):
            return list(token_ids)
        wanted, position = native.compute_ff_bytes(), 0
        for index, token_id in enumerate(token_ids):
            piece = _as_token(token_id) if is_special(token_id) else self._tokenizer.decode_bytes([token_id])
            if not wanted.startswith(piece, position):
                return list(token_ids[:index])
            position += len(piece)
        return list(token_ids)


def _as_token(token_id: int) -> bytes:
    """How the library writes a special token among bytes. It does not say of an end token that it may be consumed."""
    return b"\xff[%d]" % token_id
