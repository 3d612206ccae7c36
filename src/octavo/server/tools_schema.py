"""Schemas of tools: whether they are schemas at all, and which one an error about a constraint is about.

Owns: the check of parameters that constrain nothing (what constrains is checked with its grammar), with JSON pointers.
Does not own: keywords that a grammar cannot enforce: they are fine where the model is only told of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains",
                      "propertyNames", "unevaluatedItems", "unevaluatedProperties"})  # fmt: skip
_MAX_DEPTH = 64


def find_fault(schema: object, pointer: str = "", depth: int = 0) -> tuple[str, str] | None:
    """(JSON pointer, what is wrong) of the first thing that no JSON schema may hold; None: it is one."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, Mapping):
        return pointer, "is no schema; a schema is an object, true or false"
    if depth > _MAX_DEPTH:
        return pointer, f"is nested deeper than {_MAX_DEPTH} schemas"
    for keyword, value in schema.items():
        where = f"{pointer}/{_escape(keyword)}"
        fault = _find_in_value(keyword, value, where)
        if fault is not None:
            return fault
        for inner_pointer, inner in _inner(keyword, value, where):
            fault = find_fault(inner, inner_pointer, depth + 1)
            if fault is not None:
                return fault
    return None


def _find_in_value(keyword: str, value: object, where: str) -> tuple[str, str] | None:
    if keyword == "type":
        names = value if isinstance(value, list) else [value]
        wrong = next((name for name in names if not isinstance(name, str) or name not in _TYPES), None)
        if wrong is not None or not names:
            return where, f"{str(wrong)[:40]!r} is no type; the types are {', '.join(sorted(_TYPES))}"
    elif keyword in _MAPS and not isinstance(value, Mapping):
        return where, "must be an object that holds schemas"
    elif (keyword in _LISTS or keyword == "enum") and not isinstance(value, list):
        return where, "must be a list"
    elif keyword == "required" and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return where, "must be a list of names"
    elif keyword in ("pattern", "$ref", "format") and not isinstance(value, str):
        return where, "must be a text"
    return None


def _inner(keyword: str, value: Any, where: str) -> Iterator[tuple[str, object]]:
    """Schemas directly inside a keyword's value."""
    if keyword in _MAPS:
        yield from ((f"{where}/{_escape(name)}", inner) for name, inner in value.items())
    elif keyword in _LISTS or (keyword == "items" and isinstance(value, list)):
        yield from ((f"{where}/{index}", inner) for index, inner in enumerate(value))
    elif keyword in _SCHEMAS:
        yield where, value


def locate(pointer: str, constraint: object, schemas: Sequence[object]) -> tuple[int, str] | None:
    """(which of the schemas, pointer within it) that a pointer into a constraint made of them leads to.

    None: into none of them.
    """
    node: Any = constraint
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for num_done, step in enumerate(steps):
        for index, schema in enumerate(schemas):
            if node == schema:
                return index, "".join(f"/{_escape(rest)}" for rest in steps[num_done:])
        if isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, Mapping) and step in node:
            node = node[step]
        else:
            return None
    return next(((index, "") for index, schema in enumerate(schemas) if node == schema), None)


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
