"""A grammar back end over token ids in plain Python, for tests that need to see each step.

A constraint of kind "choice" is a JSON list of texts, each a list of token ids: "3 1 4". One of kind "regex" is any
number of tokens out of those it lists: "3 1 4". A regex of "broken" is refused, one of "lost" refuses the second token
that its own masks admit, one of "blocked" never has a mask.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from octavo.base.errors import GrammarError, ValidationError
from octavo.proto.sampling import SamplingParams
from octavo.proto.structured import GrammarSpec, PreparedGrammar, StructuredOutputsParams


def one_of(*texts: Sequence[int]) -> StructuredOutputsParams:
    """The text is one of these."""
    return StructuredOutputsParams(choice=[" ".join(map(str, text)) for text in texts])


def any_of(*token_ids: int | str) -> StructuredOutputsParams:
    """The text is made of these tokens."""
    return StructuredOutputsParams(regex=" ".join(map(str, token_ids)))


def prepared(spec: GrammarSpec) -> PreparedGrammar:
    """What an engine is told of a constraint."""
    return PreparedGrammar(text=json.dumps([spec.kind, spec.text]), num_bytes=1)


class ToyMatcher:
    """See the module."""

    def __init__(self, grammar: ToyGrammar, text: tuple[int, ...] = ()) -> None:
        self._grammar = grammar
        self.text = text
        self.num_masks = 0

    def _next(self) -> set[int]:
        grammar = self._grammar
        if grammar.texts is None:
            return set(grammar.tokens)
        return {text[len(self.text)] for text in grammar.texts if len(text) > len(self.text) and self._fits(text)}

    def _fits(self, text: tuple[int, ...]) -> bool:
        return text[: len(self.text)] == self.text

    @property
    def is_accepting(self) -> bool:
        texts = self._grammar.texts
        return texts is None or self.text in texts

    @property
    def is_complete(self) -> bool:
        return self.is_accepting and not self._next()

    def accept(self, token_ids: Sequence[int]) -> None:
        for token_id in token_ids:
            if token_id not in self._next() or (self._grammar.name == "lost" and len(self.text) == 1):
                raise GrammarError(f"token {token_id} is not allowed behind {list(self.text)}")
            self.text += (token_id,)

    def fill_mask(self, out: npt.NDArray[np.int32]) -> None:
        self.num_masks += 1
        if self._grammar.name == "blocked":
            raise GrammarError("a limit is reached")
        allowed = self._next() | (self._grammar.ends if self.is_accepting else set())
        words = out.view(np.uint32)
        words[:] = 0
        for token_id in allowed:
            words[token_id // 32] |= np.uint32(1 << (token_id % 32))

    def forced_tokens(self) -> list[int]:
        forced: list[int] = []
        matcher = self.fork()
        while len(following := matcher._next()) == 1 and not matcher.is_accepting:
            forced += following
            matcher.text += tuple(following)
        return forced

    def rollback(self, num_tokens: int) -> None:
        self.text = self.text[: len(self.text) - num_tokens]

    def fork(self) -> ToyMatcher:
        return ToyMatcher(self._grammar, self.text)


class ToyGrammar:
    """See the module."""

    num_bytes = 1

    def __init__(self, grammar: PreparedGrammar, ends: Sequence[int]) -> None:
        kind, text = json.loads(grammar.text)
        self.name = text
        self.ends = set(ends)
        self.texts: list[tuple[int, ...]] | None = None
        self.tokens: list[int] = []
        if kind == "choice":
            self.texts = [tuple(map(int, choice.split())) for choice in json.loads(text)]
        else:
            self.tokens = [3, 5] if text in ("lost", "blocked") else list(map(int, text.split()))

    def start(self) -> ToyMatcher:
        return ToyMatcher(self)


class ToyGrammars:
    """A back end, and a source of grammars that are always there."""

    def __init__(self, end_token_ids: Sequence[int] = ()) -> None:
        self.end_token_ids = frozenset(end_token_ids)
        self.compiled: list[PreparedGrammar] = []

    def prepare(self, spec: GrammarSpec) -> PreparedGrammar:
        if spec.text == "broken":
            raise ValidationError("structured_outputs.regex: is broken", parameter="structured_outputs.regex")
        return prepared(spec)

    def compile(self, grammar: PreparedGrammar) -> ToyGrammar:
        self.compiled.append(grammar)
        return ToyGrammar(grammar, sorted(self.end_token_ids))

    find = compile


def constrained(params: StructuredOutputsParams, **fields: object) -> SamplingParams:
    """As an engine gets it. Greedy unless it says otherwise."""
    return SamplingParams(**{"temperature": 0.0, "prepared_grammar": prepared(params.spec), **fields})
