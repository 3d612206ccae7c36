"""Where in a schema the fault lies that only the library found.

Owns: the search, by compiling parts of the schema; the library's messages in our words.
Does not own: compiling (the caller's).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from octavo.grammar.expression import explain_expression
from octavo.grammar.json_schema import DEFINITIONS, inner_schemas
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError, child

ErrorOf = Callable[[dict[str, Any]], str | None]
"""A schema -> the library's message, None when it compiles."""

_OUTERMOST: Final = ("$schema", "$id", "x-guidance")
_REWORDED: Final = (
    ("oneOf constraints are not supported", "oneOf is supported only where no value can match two of its schemas; "
     "give each a required property with a const of its own, or use anyOf"),
    ("are not disjoint", "two patterns may match the same name; they must exclude each other"),
    ("circular references with sibling", "a reference to itself beside other keywords is not supported"),
    ("schema too large", "the schema becomes too large when its parts are combined"),
    ("too big", "the grammar of this schema is too large"),
    ("fuel exhausted", "the grammar of this schema is too complex"),
    ("Unsatisfiable schema", "no value can satisfy this"),
    ("Pointer", "the reference leads to nothing"),
    ("registry", "the reference leads out of the schema; nothing is fetched"),
    ("minProperties", "minProperties and maxProperties are supported only where all properties are required"),
    ("maxProperties", "minProperties and maxProperties are supported only where all properties are required"),
    ("NoExtension", "no text can satisfy this"),
    ("Too many items", "is more than the limits of one step allow"),
    ("Current row", "is more than the limits of one step allow"),
    ("too many expressions", "is more than the limits of one step allow"),
    ("unknown special token", "names a special token that the tokenizer does not have"),
)  # fmt: skip


_HINTS: Final = (
    ("oneOf", ("oneOf",)),
    ("Properties", ("minProperties", "maxProperties")),
    ("disjoint", ("patternProperties",)),
    ("regex", ("pattern", "patternProperties")),
    ("circular", ("$ref",)),
)
"""What a message says, and keywords it may be about."""


def explain(message: str) -> str:
    """The library's message in our words; its first line where there are none."""
    known = explain_expression(message)
    if known is not None:
        return known
    for part, words in _REWORDED:
        if part in message:
            return words
    return f"cannot be followed: {message.splitlines()[0] if message else 'no reason is given'}"


class FaultSearch:
    """Narrows down which part of a schema cannot be compiled, with bounded work over all schemas it is asked about."""

    def __init__(self, error_of: ErrorOf, limits: GrammarLimits) -> None:
        self._error_of = error_of
        self._num_left = limits.max_error_searches
        self._end_s = time.thread_time() + limits.max_error_search_s
        self._rooted: dict[str, Any] = {}
        """The schema as a definition inside of another one."""
        self._options: dict[str, Any] = {}
        """What only the outermost schema says."""

    def find(self, schema: dict[str, Any]) -> SpecError | None:
        """The fault of this schema; None when it has none, or the work is used up."""
        self._options = {name: schema[name] for name in _OUTERMOST if name in schema}
        self._rooted = {name: _rebase(value) for name, value in schema.items() if name not in _OUTERMOST}
        message = self._message(schema)
        if message is None:
            return None
        pointer, node = self._likely_part(schema, message)
        keyword = None
        seen: set[str] = set()
        while pointer not in seen:
            seen.add(pointer)
            while (inner := self._failing_part(pointer, node, message)) is not None:
                pointer, node = inner
            keyword = self._failing_keyword(node)
            if keyword == "$ref" and node["$ref"].startswith("#/"):
                # What is referred to is at fault, wherever it is referred to from.
                pointer, node, keyword = unquote(node["$ref"][1:]), _at(schema, node["$ref"][1:]), None
        return SpecError(explain(message), pointer if keyword is None else child(pointer, keyword))

    def _likely_part(self, schema: dict[str, Any], message: str) -> tuple[str, dict[str, Any]]:
        """A part that holds a keyword such messages are about, and fails so by itself; else the whole."""
        keywords = next((keywords for part, keywords in _HINTS if part in message), ())
        stack: list[tuple[object, str]] = [(schema, "")] if keywords else []
        while stack:
            node, pointer = stack.pop()
            if isinstance(node, dict):
                stack += [(inner, where) for _, inner, where in inner_schemas(node, pointer)]
                if pointer and not node.keys().isdisjoint(keywords) and self._message_at(pointer) == message:
                    return pointer, node
        return "", schema

    def _failing_part(self, pointer: str, node: dict[str, Any], message: str) -> tuple[str, dict[str, Any]] | None:
        for keyword, inner, where in inner_schemas(node, pointer):
            if isinstance(inner, dict) and (keyword not in DEFINITIONS) and self._message_at(where) == message:
                return where, inner
        # Definitions last: one that fails matters only where something refers to it, which is then found inside.
        for keyword, inner, where in inner_schemas(node, pointer):
            if isinstance(inner, dict) and keyword in DEFINITIONS and self._message_at(where) == message:
                return where, inner
        return None

    def _failing_keyword(self, node: dict[str, Any]) -> str | None:
        """The keyword without which the rest compiles."""
        for keyword in node:
            if keyword in DEFINITIONS or keyword in (*_OUTERMOST, "type"):
                continue
            rest = {name: _rebase(value) for name, value in node.items() if name not in (keyword, *_OUTERMOST)}
            wrapped = {**self._options, "$defs": {"root": self._rooted}, "allOf": [rest]}
            if self._has_work_left() and self._message(wrapped) is None:
                return keyword
        return None

    def _message_at(self, pointer: str) -> str | None:
        wrapped = {**self._options, "$defs": {"root": self._rooted}, "$ref": f"#/$defs/root{quote(pointer)}"}
        return self._message(wrapped)

    def _message(self, schema: dict[str, Any]) -> str | None:
        if not self._has_work_left():
            return None
        self._num_left -= 1
        message = self._error_of(schema)
        # The references that led there differ with where it is seen from.
        return None if message is None else message.partition("\n  while processing")[0]

    def _has_work_left(self) -> bool:
        return self._num_left > 0 and time.thread_time() < self._end_s


def _at(schema: Any, pointer: str) -> dict[str, Any]:
    """What a checked reference points to."""
    for escaped in unquote(pointer).split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        schema = schema[int(step)] if isinstance(schema, list) else schema[step]
    return schema if isinstance(schema, dict) else {}


def _rebase(value: object) -> object:
    """A part of a schema whose references begin at #/$defs/root. Constants that look like references do no harm."""
    if isinstance(value, dict):
        return {
            name: f"#/$defs/root{item[1:]}"
            if name == "$ref" and isinstance(item, str) and item[:2] in ("#", "#/")
            else _rebase(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_rebase(item) for item in value]
    return value
