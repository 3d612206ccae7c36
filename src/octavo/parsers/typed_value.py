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

_MAX_SCHEMA_DEPTH: Final = 8
_TYPE_NAMES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def types_of(schema: Mapping[str, Any] | None, parameter: str) -> frozenset[str]:
    """JSON type names that a parameter may have; empty where the schema does not say."""
    properties = schema.get("properties") if schema else None
    if not isinstance(properties, Mapping):
        return frozenset()
    return _types(properties.get(parameter), schema or {}, 0)


def choices_of(schema: Mapping[str, Any], parameter: str) -> list[str]:
    """The texts that a parameter may be, where the schema lists them; empty where it does not, or not only texts."""
    properties = schema.get("properties")
    value = properties.get(parameter) if isinstance(properties, Mapping) else None
    for _ in range(_MAX_SCHEMA_DEPTH):
        if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
            break
        value = _resolve(value["$ref"], schema)
    choices = value.get("enum", [value.get("const")]) if isinstance(value, Mapping) else None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        return []
    return choices


def _types(schema: Any, root: Mapping[str, Any], depth: int) -> frozenset[str]:
    if not isinstance(schema, Mapping) or depth > _MAX_SCHEMA_DEPTH:
        return frozenset()
    found: set[str] = set()
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    found.update(name for name in names if isinstance(name, str))
    if not found:
        values = schema.get("enum")
        values = list(values) if isinstance(values, list) else [schema["const"]] if "const" in schema else []
        found.update(_TYPE_NAMES.get(type(value), "null") for value in values)
    if not found:
        for word in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(word)
            for branch in branches if isinstance(branches, list) else ():
                found |= _types(branch, root, depth + 1)
    reference = schema.get("$ref")
    if not found and isinstance(reference, str):
        found |= _types(_resolve(reference, root), root, depth + 1)
    return frozenset(found)


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
