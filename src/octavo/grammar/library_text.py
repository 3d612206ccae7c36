"""Every kind of constraint in the form that llguidance takes.

Owns: the choice of form, the options of a constraint, special tokens in markers.
Does not own: the checks inside (prepared_schema.py, expression.py, lark.py, tags.py), compiling.
All of this is Python over texts of strangers: it takes time in proportion to them, and holds the interpreter's lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from llguidance import LLMatcher

from octavo.grammar.end_tokens import check_end_tokens
from octavo.grammar.expression import check_expression
from octavo.grammar.lark import expression_literal, literal, prepare_grammar
from octavo.grammar.library import schema_grammar
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.prepared_schema import prepare_schema
from octavo.grammar.problem import SpecError, child
from octavo.grammar.tags import tags_to_lark
from octavo.proto.structured import MAX_PREPARED_CHARS, GrammarSpec

WHITESPACE: Final = r"[ \n\r\t]{1,64}"
"""Between the tokens of JSON unless a request says otherwise: anything, but not for ever."""


class LibraryText:
    """One constraint, written for the library. Raises SpecError while it is made.

    special: text -> id of the tokens that are matched as tokens where a marker holds them.
    """

    def __init__(self, spec: GrammarSpec, special: SpecialTexts, limits: GrammarLimits) -> None:
        self._special = special
        self._limits = limits
        self.schemas: list[tuple[str, dict[str, Any]]] = []
        """(pointer, schema) of those inside, as the library sees them."""
        self.num_states = 0
        """Of the automata that count out multipleOf."""
        options = dict(spec.options)
        self._close_objects = bool(options.get("disable_additional_properties"))
        self._whitespace = self._read_whitespace(options)
        if len(spec.text.encode()) > limits.max_bytes:
            raise SpecError(f"has more than {limits.max_bytes} bytes")
        self.text = self._write(spec)
        if len(self.text) > MAX_PREPARED_CHARS:
            raise SpecError(f"has more than {MAX_PREPARED_CHARS} characters when it is written out")

    def _read_whitespace(self, options: Mapping[str, str | bool]) -> dict[str, str | bool]:
        if options.get("disable_any_whitespace"):
            return {"whitespace_flexible": False}
        pattern = str(options.get("whitespace_pattern") or WHITESPACE)
        check_expression(pattern, self._limits)
        return {"whitespace_pattern": pattern}

    def _write(self, spec: GrammarSpec) -> str:
        match spec.kind:
            case "json":
                return schema_grammar(self._add_schema(load_json(spec.text, self._limits), ""))
            case "regex":
                check_expression(spec.text, self._limits)
                lark = f"start: {expression_literal(spec.text)}"
            case "choice":
                lark = self._choice_lark(spec.text)
            case "grammar":
                lark = prepare_grammar(spec.text, self._limits)
            case "structural_tag":
                document = load_json(spec.text, self._limits)
                check_end_tokens(document, self._special.find_end)
                lark = tags_to_lark(document, self._special.split, self._add_schema, self._limits)
        text: str = LLMatcher.grammar_from_lark(lark)
        return text

    def _add_schema(self, schema: object, pointer: str) -> dict[str, Any]:
        prepared = prepare_schema(schema, self._limits, close_objects=self._close_objects, at=pointer)
        self.num_states += prepared.multiple
        schema_with_options = {**prepared.schema, "x-guidance": self._whitespace}
        self.schemas.append((pointer, schema_with_options))
        return schema_with_options

    def _choice_lark(self, text: str) -> str:
        choices = json.loads(text)
        for index, choice in enumerate(choices):
            if len(choice.encode()) > self._limits.max_literal_bytes:
                raise SpecError(f"has more than {self._limits.max_literal_bytes} bytes", child("", index))
        # One terminal: its alternatives are one automaton, not items of the parser.
        return f"start: TEXT\nTEXT: {' | '.join(map(literal, choices))}"


class SpecialTexts:
    """Texts that the library matches as tokens, never as text."""

    def __init__(self, ids: Mapping[str, int], end_token_ids: Collection[int] = ()) -> None:
        """ids: text -> id of its token."""
        self._ids = dict(ids)
        self._end_ids = end_token_ids
        self._pattern = re.compile("|".join(re.escape(text) for text in sorted(ids, key=len, reverse=True)) or r"(?!)")

    def split(self, text: str) -> list[str | int]:
        """A marker as text and ids of special tokens."""
        pieces: list[str | int] = []
        position = 0
        for match in self._pattern.finditer(text):
            if match.start() > position:
                pieces.append(text[position : match.start()])
            pieces.append(self._ids[match.group()])
            position = match.end()
        return [*pieces, text[position:]] if position < len(text) else pieces

    def find_end(self, text: str) -> int | None:
        """Where the first end token in a marker ends."""
        ends = (match.end() for match in self._pattern.finditer(text) if self._ids[match.group()] in self._end_ids)
        return next(ends, None)


def load_json(text: str, limits: GrammarLimits) -> object:
    """The value of a JSON text that does not nest too deep. Raises SpecError."""
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
