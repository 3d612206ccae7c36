"""Where in a schema the fault lies that only the library found.

Owns: the search, by compiling parts of the schema; the library's messages in our words.
Does not own: compiling (the caller's).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from octavo.grammar.expression import explain_expression
from octavo.grammar.json_schema import DEFINITIONS, inner_schemas
from octavo.grammar.problem import SpecError, child

ErrorOf = Callable[[dict[str, Any]], str | None]
"""A schema -> the library's message, None when it compiles."""

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
)  # fmt: skip


def explain(message: str) -> str:
    """The library's message in our words; its first line where there are none."""
    known = explain_expression(message)
    if known is not None:
        return known
    for part, words in _REWORDED:
        if part in message:
            return words
    return f"cannot be enforced: {message.splitlines()[0] if message else 'no reason is given'}"


def without_trail(message: str | None) -> str | None:
    """The message without the references that led to it, so that it is the same seen from anywhere."""
    return None if message is None else message.partition("\n  while processing")[0]


class FaultSearch:
    """Narrows down which part of a schema cannot be compiled, with a bounded number of compilations."""

    def __init__(self, schema: dict[str, Any], error_of: ErrorOf, max_searches: int) -> None:
        self._schema = schema
        self._error_of = error_of
        self._num_left = max_searches
        self._rooted = {
            keyword: _rebase(value) for keyword, value in schema.items() if keyword not in ("$schema", "$id")
        }
        """The schema as a definition inside of another one."""

    def find(self, message: str) -> SpecError:
        """The fault that `message` is about."""
        message = without_trail(message) or ""
        pointer, node = "", self._schema
        while (inner := self._failing_part(pointer, node, message)) is not None:
            pointer, node = inner
        keyword = self._failing_keyword(pointer, node)
        return SpecError(explain(message), pointer if keyword is None else child(pointer, keyword))

    def _failing_part(self, pointer: str, node: dict[str, Any], message: str) -> tuple[str, dict[str, Any]] | None:
        for keyword, inner, where in inner_schemas(node, pointer):
            if isinstance(inner, dict) and (keyword not in DEFINITIONS) and self._message_at(where) == message:
                return where, inner
        # Definitions last: one that fails matters only where something refers to it, which is then found inside.
        for keyword, inner, where in inner_schemas(node, pointer):
            if isinstance(inner, dict) and keyword in DEFINITIONS and self._message_at(where) == message:
                return where, inner
        return None

    def _failing_keyword(self, pointer: str, node: dict[str, Any]) -> str | None:
        """The keyword without which the rest compiles."""
        for keyword in node:
            if keyword in DEFINITIONS or keyword in ("$schema", "$id", "type"):
                continue
            rest = {name: _rebase(value) for name, value in node.items() if name not in (keyword, "$schema", "$id")}
            if self._num_left > 0 and self._message({"$defs": {"root": self._rooted}, "allOf": [rest]}) is None:
                return keyword
        return None

    def _message_at(self, pointer: str) -> str | None:
        return self._message({"$defs": {"root": self._rooted}, "$ref": f"#/$defs/root{pointer}"})

    def _message(self, schema: dict[str, Any]) -> str | None:
        if self._num_left <= 0:
            return None
        self._num_left -= 1
        dialect = {"$schema": self._schema["$schema"]} if "$schema" in self._schema else {}
        return without_trail(self._error_of({**dialect, **schema}))


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
