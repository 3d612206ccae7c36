"""The grammar back end on llguidance (MIT; Earley parser over a lexer of derivatives).

Owns: its tokenizer, options and limits, the trial compilation, what is said of a grammar it refuses.
Does not own: constraints in the library's form (library_text.py), threads and compiled grammars that are kept
(compiler.py, cache.py).
Invariants: what `prepare` admits compiles; errors never show the inside of a grammar; no panic of the library gets out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from octavo.base.errors import GrammarError, LoadError
from octavo.grammar.library import guarded, is_panic, schema_grammar
from octavo.grammar.library_text import LibraryText, SpecialTexts
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.matcher import LlguidanceMatcher
from octavo.grammar.problem import SpecError, as_validation_error
from octavo.grammar.schema_fault import FaultSearch, explain
from octavo.grammar.spelled_token import SpelledTokens
from octavo.grammar.verdicts import Refusal, Verdicts
from octavo.proto.structured import GrammarSpec, PreparedGrammar

_BYTES_PER_GRAMMAR: Final = 160 << 10
_BYTES_PER_TEXT_BYTE: Final = 250
_BYTES_PER_STATE: Final = 500
"""Measured with room: 120 KB, 70 to 170 bytes, 350 bytes (docs/log.md)."""


class LlguidanceGrammar:
    """A CompiledGrammar (interface.py): the matcher at the beginning, which is copied for each text."""

    def __init__(self, pristine: LlguidanceMatcher, num_bytes: int) -> None:
        self._pristine = pristine
        self._num_bytes = num_bytes

    @property
    def num_bytes(self) -> int:
        return self._num_bytes

    def start(self) -> LlguidanceMatcher:
        return self._pristine.fork()


class LlguidanceBackend:
    """A GrammarBackend (interface.py).

    Construction reads the tokenizer (0.3 s for 49k tokens, 1 s for 152k), during which no other thread of the process
    runs. Raises LoadError when the library cannot use it.
    """

    def __init__(
        self,
        tokenizer_json: str,
        vocab_size: int,
        eos_token_ids: Sequence[int],
        limits: GrammarLimits | None = None,
    ) -> None:
        self._limits = limits or GrammarLimits()
        self._vocab_size = vocab_size
        self._end_ids = frozenset(eos_token_ids)
        try:
            self._tokenizer = LLTokenizer(tokenizer_json, n_vocab=vocab_size, eos_token=list(eos_token_ids))
        except Exception as error:
            raise LoadError(f"the grammar library cannot use this tokenizer: {error}") from error
        except BaseException as error:
            if not is_panic(error):
                raise
            raise LoadError(f"the grammar library cannot use this tokenizer: {error}") from error
        self._special = _special_texts(tokenizer_json, self._tokenizer, self._end_ids)
        self._spelled = SpelledTokens(self._tokenizer)
        self._native_limits = _native_limits(self._limits)
        self._verdicts = Verdicts(self._limits.max_verdict_bytes)

    def prepare(self, spec: GrammarSpec) -> PreparedGrammar:
        known = self._verdicts.find(spec)
        if known is not None:
            return known
        try:
            prepared = self._prepare(spec)
        except SpecError as problem:
            refused = as_validation_error(problem, spec.kind)
            self._verdicts.add(spec, Refusal.of(refused))
            raise refused from problem
        self._verdicts.add(spec, prepared)
        return prepared

    def compile(self, grammar: PreparedGrammar) -> LlguidanceGrammar:
        try:
            native = self._build(grammar.text)
            fault = native.get_error() if native.is_error() else None
        except SpecError as problem:
            fault = problem.problem
        if fault is not None:
            raise GrammarError(f"the grammar library refuses what it admitted before: {explain(fault)}")
        matcher = LlguidanceMatcher(native, self._vocab_size, self._end_ids, self._limits, self._spelled)
        return LlguidanceGrammar(matcher, grammar.num_bytes)

    def _prepare(self, spec: GrammarSpec) -> PreparedGrammar:
        written = LibraryText(spec, self._special, self._limits)
        native = self._build(written.text)
        if native.is_error():
            raise self._fault(native.get_error(), written)
        # The first mask shows what nothing can satisfy, and what is too much for one step.
        mask = np.empty((self._vocab_size + 31) // 32, np.int32)
        guarded(lambda: native.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes))
        if native.is_error():
            raise SpecError(explain(native.get_error()), "" if spec.kind == "json" else None)
        self._check_beginning(native, spec)
        num_bytes = (
            _BYTES_PER_GRAMMAR + _BYTES_PER_TEXT_BYTE * len(written.text) + _BYTES_PER_STATE * written.num_states
        )
        return PreparedGrammar(text=written.text, num_bytes=num_bytes)

    def _check_beginning(self, native: LLMatcher, spec: GrammarSpec) -> None:
        """Walk what every text begins with, as the first step will. Raises SpecError where that is too much for it."""
        matcher = LlguidanceMatcher(native, self._vocab_size, self._end_ids, self._limits, self._spelled)
        mask = np.empty((self._vocab_size + 31) // 32, np.int32)
        try:
            forced = matcher.forced_tokens()
            walked = list(takewhile(lambda token_id: token_id not in self._end_ids, forced))
            matcher.accept(walked)
            if walked and walked == forced and not matcher.is_complete:
                matcher.fill_mask(mask)
        except GrammarError as error:
            problem = "what every text begins with has no end, or is more than the limits of one step allow"
            raise SpecError(problem, "" if spec.kind == "json" else None) from error

    def _build(self, text: str) -> LLMatcher:
        return guarded(lambda: LLMatcher(self._tokenizer, text, log_level=0, limits=self._native_limits))

    def _fault(self, message: str, written: LibraryText) -> SpecError:
        """What the library refuses, with its place where it is in a schema."""
        search = FaultSearch(self._error_of, self._limits)
        for pointer, schema in written.schemas:
            problem = search.find(schema)
            if problem is not None:
                return SpecError(problem.problem, pointer + (problem.pointer or ""))
        return SpecError(explain(message))

    def _error_of(self, schema: dict[str, Any]) -> str | None:
        native = self._build(schema_grammar(schema))
        return str(native.get_error()) if native.is_error() else None


def _special_texts(tokenizer_json: str, tokenizer: LLTokenizer, end_token_ids: Collection[int]) -> SpecialTexts:
    added = json.loads(tokenizer_json).get("added_tokens") or []
    return SpecialTexts(
        {
            token["content"]: token["id"]
            for token in added
            if token["id"] < tokenizer.vocab_size and tokenizer.is_special_token(token["id"])
        },
        end_token_ids,
    )


def _native_limits(limits: GrammarLimits) -> LLParserLimits:
    return LLParserLimits(
        max_items_in_row=limits.max_items_in_row,
        initial_lexer_fuel=limits.initial_lexer_fuel,
        step_lexer_fuel=limits.step_lexer_fuel,
        step_max_items=limits.step_max_items,
        max_lexer_states=limits.max_lexer_states,
        max_grammar_size=limits.max_grammar_size,
        verbose_errors=False,
    )
