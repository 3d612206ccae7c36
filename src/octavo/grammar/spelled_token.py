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
        return self._tokenizer.is_special_token(token_id) and native.validate_tokens([token_id]) == 0

    def first_token(self, token_id: int) -> int:
        """The one to begin the text of a special token with."""
        text = self._tokenizer.decode_str([token_id]).encode()
        first: int = self._tokenizer.tokenize_bytes(text[:-1])[0]
        return first

    def without_spelled(self, native: LLMatcher, token_ids: Sequence[int]) -> list[int]:
        """Tokens that must come, up to the first that is only text in the grammar."""
        known = list(token_ids)
        if any(map(self._tokenizer.is_special_token, known)):
            return known[: native.validate_tokens(known)]
        return known
