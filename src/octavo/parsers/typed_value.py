"""What a raw parameter value becomes in JSON, by the types that the tool's schema gives it.

Owns: the types of a parameter (type, enum, const, anyOf/oneOf/allOf, local $ref), its choices, the JSON of
a value.
Does not own: where a value begins and ends.
Results: a value whose parameter may be a string, or is unknown, is a string as it is written ("null" is null where both
are allowed); any other is passed on if it is JSON, turned into JSON if it is a Python literal, and a string otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from octavo.parsers.json_text import escape
from octavo.parsers.python_literal import read_literal
from octavo.proto.sampling_checks import refuse

MAX_CHOICES: Final = 4096
"""Of one parameter."""
_MAX_REFERENCES: Final = 8
"""In a row, where choices are looked for."""
_MAX_SCHEMAS: Final = 64
"""Looked at for the types of one parameter: tools may have many parameters that refer to much."""
_COMBINING: Final = ("anyOf", "oneOf", "allOf")
_TYPE_NAMES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def types_of(schema: Mapping[str, Any] | None, parameter: str) -> frozenset[str]:
    """JSON type names that a parameter may have; empty where the schema does not say."""
    properties = schema.get("properties") if schema else None
    if not isinstance(properties, Mapping):
        return frozenset()
    return _types(properties.get(parameter), schema or {})


def choices_of(schema: Mapping[str, Any], parameter: str) -> list[str]:
    """The texts that a parameter may be, where the schema lists them; empty where it does not, or not only texts.

    Raises ValidationError where there are more than MAX_CHOICES.
    """
    properties = schema.get("properties")
    value = properties.get(parameter) if isinstance(properties, Mapping) else None
    for _ in range(_MAX_REFERENCES):
        if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
            break
        value = _resolve(value["$ref"], schema)
    choices = value.get("enum", [value.get("const")]) if isinstance(value, Mapping) else None
    if isinstance(choices, list) and len(choices) > MAX_CHOICES:
        refuse("tools", len(choices), f"values of the parameter {parameter[:60]!r}; at most {MAX_CHOICES} are taken")
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        return []
    return choices


def _types(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """Of a schema, or of the schemas that it only combines or refers to. Each reference is followed once."""
    found: set[str] = set()
    followed: set[str] = set()
    stack = [schema]
    for _ in range(_MAX_SCHEMAS):
        if not stack:
            break
        node = stack.pop()
        if not isinstance(node, Mapping):
            continue
        own = _own_types(node)
        found |= own
        branches = [branch for word in _COMBINING for branch in _list(node, word)[:_MAX_SCHEMAS]]
        reference = node.get("$ref")
        if not own and branches:
            stack += branches
        elif not own and isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            stack.append(_resolve(reference, root))
    return frozenset(found)


def _own_types(node: Mapping[str, Any]) -> set[str]:
    """Those that a schema names, or that its values have."""
    named = node.get("type")
    names = {name for name in ([named] if isinstance(named, str) else _list(node, "type")) if isinstance(name, str)}
    values = _list(node, "enum")[:MAX_CHOICES] or ([node["const"]] if "const" in node else [])
    return names or {_TYPE_NAMES.get(type(value), "null") for value in values}


def _list(node: Mapping[str, Any], keyword: str) -> list[Any]:
    value = node.get(keyword)
    return value if isinstance(value, list) else []


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return None
    place: Any = root
    for step in reference[2:].split("/"):
        if not isinstance(place, Mapping):
            return None
        place = place.get(step.replace("~1", "/").replace("~0", "~"))
    return place


def json_of(text: str) -> str:
    """The JSON of a whole value that is no string by its schema."""
    value = text.strip()
    try:
        json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    else:
        return value
    try:
        return read_literal(value)
    except ValueError:
        return f'"{escape(text)}"'


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
