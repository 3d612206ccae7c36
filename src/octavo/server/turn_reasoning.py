"""Where the reasoning of an answer begins and ends: what the prompt says of it, and how many tokens it takes.

Owns: the state a prompt leaves the model in, what the engine is told of reasoning, the count of its tokens.
Does not own: splitting text (parsers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from msgspec import structs

from octavo.engine.input.processor import PreparedRequest
from octavo.loading import Tokenizer
from octavo.parsers.interface import ReasoningFormat
from octavo.proto.structured import PreparedGrammar, StructuredOutputsParams
from octavo.server.structured import as_tag, form_of


class ReasoningState(Enum):
    """How a prompt leaves the model."""

    OPEN = "open"
    """The prompt says nothing: the model begins to reason, or does not."""
    INSIDE = "inside"
    """The prompt ends with the beginning of reasoning."""
    OVER = "over"
    """The prompt ends with reasoning that is over: the model was told not to reason."""


@dataclass(frozen=True, slots=True)
class ReasoningNames:
    """The fields that reasoning is written to, as --reasoning-field says."""

    new: bool
    """`reasoning`."""
    old: bool
    """`reasoning_content`."""

    @classmethod
    def of(cls, option: str) -> ReasoningNames:
        return cls(new=option != "reasoning_content", old=option != "reasoning")


def find_state(prompt: str, reasoning: ReasoningFormat) -> ReasoningState:
    """How this rendered prompt leaves the model."""
    if reasoning.starts_in_reasoning(prompt):
        return ReasoningState.INSIDE
    return ReasoningState.OVER if prompt.rstrip().endswith(reasoning.end_marker) else ReasoningState.OPEN


def constraint_with_reasoning(
    constraint: StructuredOutputsParams | None, reasoning: ReasoningFormat, state: ReasoningState
) -> StructuredOutputsParams | None:
    """What takes the place of a constraint where the model may reason first, or not. None: it stays as it is.

    Raises ValidationError where that is too large.
    """
    form = form_of(constraint) if constraint is not None and state is ReasoningState.OPEN else None
    return None if form is None or constraint is None else as_tag(_behind_reasoning(form, reasoning), constraint)


def fit_reasoning(
    prepared: PreparedRequest,
    tokenizer: Tokenizer,
    reasoning: ReasoningFormat,
    state: ReasoningState,
    budget: int | None,
    *,
    grammar: PreparedGrammar | None = None,
    constrains_reasoning: bool = False,
) -> PreparedRequest:
    """Its constraint begins behind the reasoning, which ends within its budget (None, -1: there is none).

    grammar: of `constraint_with_reasoning`. constrains_reasoning: the constraint holds from the first token all the
    same.
    """
    start, end = (
        tokenizer.encode(marker, add_special_tokens=False) for marker in (reasoning.begin_marker, reasoning.end_marker)
    )
    changes: dict[str, Any] = {}
    if grammar is not None:
        changes["prepared_grammar"] = grammar
    elif prepared.sampling.structured_outputs is not None and not constrains_reasoning:
        changes["structured_after"] = end
    if budget not in (None, -1):
        changes["thinking_token_budget"] = budget
        changes["thinking_start_token_ids"] = None if state is ReasoningState.INSIDE else start
        changes["thinking_end_token_ids"] = end
    if not changes:
        return prepared
    return replace(
        prepared,
        sequences=[
            structs.replace(sequence, sampling=sequence.sampling.clone(**changes)) for sequence in prepared.sequences
        ],
    )


def _behind_reasoning(form: Mapping[str, Any], reasoning: ReasoningFormat) -> dict[str, Any]:
    """Reasoning if the model begins with it, then the form: nothing else would bind a model that does not reason."""
    thought = {
        "type": "tag",
        "begin": reasoning.begin_marker,
        "content": {"type": "any_text"},
        "end": reasoning.end_marker,
    }
    blanks = {"type": "regex", "pattern": "[ \\n]{0,4}"}
    reasoned = {"type": "sequence", "elements": [thought, blanks]}
    return {"type": "sequence", "elements": [{"type": "optional", "content": reasoned}, form]}


def counter_factory(
    tokenizer: Tokenizer, reasoning: ReasoningFormat, state: ReasoningState
) -> Callable[[], ReasoningCounter]:
    """Makes the counter of one answer."""
    start, end, is_inside = reasoning.begin_marker, reasoning.end_marker, state is ReasoningState.INSIDE
    return lambda: ReasoningCounter(tokenizer.id_to_bytes, start, end, is_inside=is_inside)


class ReasoningCounter:
    """Counts the tokens of one answer's reasoning, without those that begin and end it. Linear, bounded memory."""

    def __init__(self, token_bytes: Callable[[int], bytes | None], start: str, end: str, *, is_inside: bool) -> None:
        self._token_bytes = token_bytes
        self._start, self._end = start.encode(), end.encode()
        self._is_inside = is_inside
        self._is_over = False
        self._seen = b""
        self._open_sizes: list[int] = []
        """Bytes of the last tokens, as far as they may be part of the end's marker."""
        self.num_tokens = 0

    def feed(self, token_ids: Sequence[int]) -> None:
        """The next tokens of the answer."""
        for token_id in token_ids:
            if self._is_over:
                return
            piece = self._token_bytes(token_id) or b""
            if self._is_inside:
                self._take_inside(piece)
            else:
                self._take_before(piece)

    def _take_before(self, piece: bytes) -> None:
        self._seen = (self._seen + piece).lstrip()
        if self._seen.startswith(self._start):
            self._is_inside, self._seen = True, b""
        elif not self._start.startswith(self._seen):
            self._is_over = True

    def _take_inside(self, piece: bytes) -> None:
        seen = self._seen + piece
        if self._end in seen:
            self._is_over = True
            self.num_tokens -= len(self._open_sizes)
            return
        num_kept = _overlap(seen, self._end)
        self.num_tokens += 1
        self._open_sizes.append(len(piece))
        while self._open_sizes and sum(self._open_sizes) > num_kept:
            del self._open_sizes[0]
        self._seen = seen[len(seen) - num_kept :]


def _overlap(text: bytes, marker: bytes) -> int:
    """Length of the longest end of `text` that begins `marker`."""
    return next((size for size in range(min(len(text), len(marker) - 1), 0, -1) if text.endswith(marker[:size])), 0)
