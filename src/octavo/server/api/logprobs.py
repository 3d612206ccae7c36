"""Logprobs in the forms of the two APIs.

Owns: names of tokens, offsets, order.   Does not own: which logprobs there are (the engine reports what was asked for).
JSON has no infinity: -inf is written as -9999.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from octavo.outputs import Logprob, PositionLogprobs

LOWEST = -9999.0


class TokenBytes(Protocol):
    """What names need of a tokenizer."""

    def id_to_bytes(self, token_id: int) -> bytes | None: ...
    def token_text(self, token_id: int) -> str: ...


class PromptLogprob(msgspec.Struct, kw_only=True):
    """One token at one position of the prompt."""

    logprob: float
    rank: int | None
    decoded_token: str | None


PromptLogprobs = list[dict[str, PromptLogprob] | None]
"""One entry a prompt token; the first has none."""


class CompletionLogprobs(msgspec.Struct, kw_only=True):
    """Parallel lists, one entry a token. `top_logprobs` holds the token itself too, if it is not among the best."""

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None]


class TopLogprob(msgspec.Struct, kw_only=True):
    """A token that could have been."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(msgspec.Struct, kw_only=True):
    """A token that was chosen."""

    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[TopLogprob]


class ChatLogprobs(msgspec.Struct, kw_only=True):
    """One entry a token."""

    content: list[TokenLogprob]


@dataclass(frozen=True, slots=True)
class TokenNames:
    """How tokens are called in answers: by their text, or as token_id:42."""

    tokenizer: TokenBytes | None
    as_ids: bool

    def name(self, token_id: int, logprob: Logprob | None = None) -> str:
        """One token."""
        if self.as_ids or self.tokenizer is None:
            return f"token_id:{token_id}"
        if logprob is not None and logprob.decoded_token is not None:
            return logprob.decoded_token
        return self.tokenizer.token_text(token_id)

    def raw(self, token_id: int) -> list[int] | None:
        """Its bytes, also where it is part of a character."""
        piece = self.tokenizer.id_to_bytes(token_id) if self.tokenizer is not None else None
        return None if piece is None else list(piece)

    def num_chars(self, token_id: int, logprob: Logprob | None) -> int:
        """Length of its text."""
        if logprob is not None and logprob.decoded_token is not None:
            return len(logprob.decoded_token)
        return len(self.tokenizer.token_text(token_id)) if self.tokenizer is not None else 0


def completion_logprobs(
    token_ids: Sequence[int],
    positions: Sequence[PositionLogprobs | None],
    names: TokenNames,
    *,
    offset: int,
) -> tuple[CompletionLogprobs, int]:
    """(lists for these tokens, offset behind them). `offset`: characters of the text before them."""
    lists = CompletionLogprobs(text_offset=[], token_logprobs=[], tokens=[], top_logprobs=[])
    for token_id, position in zip(token_ids, positions, strict=True):
        own = position[token_id] if position is not None else None
        lists.text_offset.append(offset)
        lists.tokens.append(names.name(token_id, own))
        lists.token_logprobs.append(None if own is None else max(own.logprob, LOWEST))
        lists.top_logprobs.append(None if position is None else _best_by_name(position, names))
        offset += names.num_chars(token_id, own)
    return lists, offset


def _best_by_name(position: PositionLogprobs, names: TokenNames) -> dict[str, float]:
    """Two tokens may have one name (parts of a character): the more probable one is kept."""
    best: dict[str, float] = {}
    for token_id, logprob in position.items():
        name, value = names.name(token_id, logprob), max(logprob.logprob, LOWEST)
        best[name] = max(value, best.get(name, LOWEST))
    return best


def chat_logprobs(
    token_ids: Sequence[int], positions: Sequence[PositionLogprobs], names: TokenNames, *, num_top: int | None
) -> ChatLogprobs:
    """The entries of these tokens, with the num_top best of each, most probable first; None: all there are."""
    content = []
    for token_id, position in zip(token_ids, positions, strict=True):
        own = position[token_id]
        ranked = sorted(position.items(), key=lambda item: item[1].rank if item[1].rank is not None else 1 << 31)
        if num_top is not None:
            ranked = [item for item in ranked if item[1].rank is not None and item[1].rank <= num_top]
        content.append(
            TokenLogprob(
                token=names.name(token_id, own),
                logprob=max(own.logprob, LOWEST),
                bytes=names.raw(token_id),
                top_logprobs=[
                    TopLogprob(token=names.name(other, lp), logprob=max(lp.logprob, LOWEST), bytes=names.raw(other))
                    for other, lp in ranked
                ],
            )
        )
    return ChatLogprobs(content=content)


def prompt_logprobs(positions: Sequence[PositionLogprobs | None] | None) -> PromptLogprobs | None:
    """As vLLM writes them: by token id."""
    if positions is None:
        return None
    return [
        None
        if position is None
        else {
            str(token_id): PromptLogprob(logprob=max(lp.logprob, LOWEST), rank=lp.rank, decoded_token=lp.decoded_token)
            for token_id, lp in position.items()
        }
        for position in positions
    ]
