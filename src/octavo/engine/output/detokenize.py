"""Token ids to text, a few at a time.

Owns: the bytes of a character that is not complete yet.   Does not own: stop strings (stop.py), the vocabulary.
Invariants: the pieces joined equal the text of all ids at once; what was returned is never taken back, so U+FFFD
appears only for bytes that can no longer become a character; cost and memory per token do not grow with the text.

A token stands for bytes, and the text is the UTF-8 reading of all bytes in a row: a character may be split over tokens.
Invalid bytes are replaced as Unicode recommends (one U+FFFD per maximal subpart), which is what the byte-level decoder
of the `tokenizers` package does as well.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Protocol


class TokenBytes(Protocol):
    """What the detokenizer needs of a tokenizer."""

    def id_to_bytes(self, token_id: int) -> bytes | None:
        """The bytes this token adds to a text; None when the vocabulary has no such id."""
        ...

    def is_special(self, token_id: int) -> bool:
        """True for control tokens such as end of turn."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str: ...


class IncrementalDetokenizer:
    """Text of one sequence. `feed` returns what is certain after these tokens, `flush` the rest at the end."""

    def __init__(self, tokenizer: TokenBytes, *, skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_at_start = True

    def feed(self, token_ids: Sequence[int]) -> str:
        """The text these tokens complete. Ids outside the vocabulary (padding of the logits) have no text."""
        pieces = []
        for token_id in token_ids:
            if self._skip_special_tokens and self._tokenizer.is_special(token_id):
                continue
            piece = self._tokenizer.id_to_bytes(token_id)
            if not piece:
                continue
            if self._is_at_start:
                piece = self._without_dummy_prefix(token_id, piece)
                self._is_at_start = False
            pieces.append(piece)
        return self._decoder.decode(b"".join(pieces)) if pieces else ""

    def flush(self) -> str:
        """The sequence has ended: an incomplete character becomes U+FFFD."""
        return self._decoder.decode(b"", final=True)

    def _without_dummy_prefix(self, token_id: int, piece: bytes) -> bytes:
        """SentencePiece models that put a space before every text take it away again when decoding."""
        if piece.startswith(b" ") and not self._tokenizer.decode([token_id], skip_special_tokens=False).startswith(" "):
            return piece[1:]
        return piece
