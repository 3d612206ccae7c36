"""The grammar back end on llguidance (MIT; Earley parser over a lexer of derivatives).

Owns: every kind of constraint -> the library's form, its options and limits, special tokens in markers.
Does not own: caching and threads (cache.py, compiler.py).
Invariants: what check admits compiles; errors never show the inside of a grammar; no panic of the library gets out.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from octavo.base.errors import LoadError
from octavo.grammar.expression import check_expression
from octavo.grammar.lark import expression_literal, literal, prepare_grammar
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.matcher import LlguidanceMatcher, is_panic
from octavo.grammar.prepared_schema import prepare_schema
from octavo.grammar.problem import SpecError, as_validation_error, child
from octavo.grammar.schema_fault import FaultSearch, explain
from octavo.grammar.tags import tags_to_lark
from octavo.proto.structured import GrammarSpec

WHITESPACE: Final = r"[ \n\r\t]{1,64}"
"""Between the tokens of JSON unless a request says otherwise: anything, but not for ever."""
_BYTES_PER_GRAMMAR: Final = 160 << 10
_BYTES_PER_TEXT_BYTE: Final = 250
_BYTES_PER_STATE: Final = 500
"""Measured with room: 120 KB, 70 to 170 bytes, 350 bytes (docs/log.md)."""

T = TypeVar("T")


class _Schemas:
    """The schemas of one constraint, in the form the library takes, with the options of that constraint."""

    def __init__(self, limits: GrammarLimits, options: dict[str, str | bool]) -> None:
        self._limits = limits
        self._close_objects = bool(options.get("disable_additional_properties"))
        self.added: list[tuple[str, dict[str, Any]]] = []
        """(pointer, schema)."""
        self.num_states = 0
        if options.get("disable_any_whitespace"):
            self._whitespace: dict[str, str | bool] = {"whitespace_flexible": False}
        else:
            pattern = str(options.get("whitespace_pattern") or WHITESPACE)
            check_expression(pattern, limits)
            self._whitespace = {"whitespace_pattern": pattern}

    def add(self, schema: object, pointer: str) -> dict[str, Any]:
        """Raises SpecError."""
        prepared = prepare_schema(schema, self._limits, close_objects=self._close_objects, at=pointer)
        self.num_states += prepared.multiple
        schema_with_options = {**prepared.schema, "x-guidance": self._whitespace}
        self.added.append((pointer, schema_with_options))
        return schema_with_options


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
        self._special = _special_texts(tokenizer_json, self._tokenizer)
        self._special_pattern = re.compile(
            "|".join(re.escape(text) for text in sorted(self._special, key=len, reverse=True)) or r"(?!)"
        )
        self._native_limits = _native_limits(self._limits)
        self._lock = threading.Lock()
        self._checked: OrderedDict[bytes, None] = OrderedDict()
        """Digests of constraints that were admitted last."""

    def check(self, spec: GrammarSpec) -> None:
        digest = hashlib.blake2b(repr(spec).encode(), digest_size=16).digest()
        with self._lock:
            if digest in self._checked:
                self._checked.move_to_end(digest)
                return
        self.compile(spec)
        with self._lock:
            self._checked[digest] = None
            if len(self._checked) > self._limits.max_checked:
                self._checked.popitem(last=False)

    def compile(self, spec: GrammarSpec) -> LlguidanceGrammar:
        try:
            return self._compile(spec)
        except SpecError as problem:
            raise as_validation_error(problem, spec.kind) from problem

    def _compile(self, spec: GrammarSpec) -> LlguidanceGrammar:
        if len(spec.text.encode()) > self._limits.max_bytes:
            raise SpecError(f"has more than {self._limits.max_bytes} bytes")
        schemas = _Schemas(self._limits, dict(spec.options))
        text = self._translate(spec, schemas)
        native = self._build(text)
        if native.is_error():
            raise self._fault(native.get_error(), schemas)
        # The first mask shows what nothing can satisfy, and what is too much for one step.
        pristine = _guarded(native.deep_copy)
        mask = np.empty((self._vocab_size + 31) // 32, np.int32)
        _guarded(lambda: native.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes))
        if native.is_error():
            raise SpecError(explain(native.get_error()), "" if spec.kind == "json" else None)
        matcher = LlguidanceMatcher(pristine, self._vocab_size, self._end_ids, self._limits)
        num_bytes = _BYTES_PER_GRAMMAR + _BYTES_PER_TEXT_BYTE * len(text) + _BYTES_PER_STATE * schemas.num_states
        return LlguidanceGrammar(matcher, num_bytes)

    def _translate(self, spec: GrammarSpec, schemas: _Schemas) -> str:
        """The constraint as the library takes it."""
        match spec.kind:
            case "json":
                return _schema_grammar(schemas.add(_load_json(spec.text, self._limits), ""))
            case "regex":
                check_expression(spec.text, self._limits)
                lark = f"start: {expression_literal(spec.text)}"
            case "choice":
                lark = self._choice_lark(spec.text)
            case "grammar":
                lark = prepare_grammar(spec.text, self._limits)
            case "structural_tag":
                document = _load_json(spec.text, self._limits)
                lark = tags_to_lark(document, self._split, schemas.add, self._limits)
        text: str = LLMatcher.grammar_from_lark(lark)
        return text

    def _build(self, text: str) -> LLMatcher:
        return _guarded(lambda: LLMatcher(self._tokenizer, text, log_level=0, limits=self._native_limits))

    def _fault(self, message: str, schemas: _Schemas) -> SpecError:
        """What the library refuses, with its place where it is in a schema."""
        search = FaultSearch(self._error_of, self._limits)
        for pointer, schema in schemas.added:
            problem = search.find(schema)
            if problem is not None:
                return SpecError(problem.problem, pointer + (problem.pointer or ""))
        return SpecError(explain(message))

    def _error_of(self, schema: dict[str, Any]) -> str | None:
        native = self._build(_schema_grammar(schema))
        return str(native.get_error()) if native.is_error() else None

    def _choice_lark(self, text: str) -> str:
        choices = json.loads(text)
        for index, choice in enumerate(choices):
            if len(choice.encode()) > self._limits.max_literal_bytes:
                raise SpecError(f"has more than {self._limits.max_literal_bytes} bytes", child("", index))
        # One terminal: its alternatives are one automaton, not items of the parser.
        return f"start: TEXT\nTEXT: {' | '.join(map(literal, choices))}"

    def _split(self, text: str) -> list[str | int]:
        """A marker as text and ids of special tokens."""
        pieces: list[str | int] = []
        position = 0
        for match in self._special_pattern.finditer(text):
            if match.start() > position:
                pieces.append(text[position : match.start()])
            pieces.append(self._special[match.group()])
            position = match.end()
        return [*pieces, text[position:]] if position < len(text) else pieces


def _schema_grammar(schema: dict[str, Any]) -> str:
    text: str = _guarded(lambda: LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    return text


def _guarded(function: Callable[[], T]) -> T:
    """Whatever the library raises, panics included, is a fault of the grammar it was given."""
    try:
        return function()
    except SpecError:
        raise
    except Exception as error:
        raise SpecError("the grammar library cannot read it") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise SpecError("the grammar library fails on it") from error


def _load_json(text: str, limits: GrammarLimits) -> object:
    depth = 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[\[{]|[\]}]', text):
        bracket = match.group()
        if bracket in "[{":
            depth += 1
            if depth > limits.max_depth:
                raise SpecError(f"nests deeper than {limits.max_depth}")
        elif bracket in "]}":
            depth -= 1
    try:
        return json.loads(text)
    except ValueError as error:
        raise SpecError(f"is not JSON: {error}") from error


def _special_texts(tokenizer_json: str, tokenizer: LLTokenizer) -> dict[str, int]:
    """Texts that the library matches as tokens, never as text."""
    added = json.loads(tokenizer_json).get("added_tokens") or []
    return {
        token["content"]: token["id"]
        for token in added
        if token["id"] < tokenizer.vocab_size and tokenizer.is_special_token(token["id"])
    }


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
