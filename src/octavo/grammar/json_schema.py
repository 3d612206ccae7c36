"""JSON schemas: what is refused before the library sees them, with the place of the fault.

Owns: the walk over a schema: keywords, their values, counts; the normal form given to the library.
Does not own: references and depth through them (schema_refs.py), the fault in what only the library refuses
(schema_fault.py); prepared_schema.py does both checks.
Invariants: nothing is fetched; the caller's value is not changed; a keyword the library does not enforce is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from octavo.grammar.exact_number import check_bound, check_constant, lower_bound_of_integers
from octavo.grammar.expression import check_expression
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError, child, shown

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
FORMATS: Final = (
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri",
)  # fmt: skip
DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
)  # fmt: skip
UNSUPPORTED: Final = (
    "not", "if", "then", "else", "uniqueItems", "contains", "minContains", "maxContains", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
)  # fmt: skip
"""Keywords that constrain and that no mask can enforce, or does."""
DEFINITIONS: Final = ("$defs", "definitions")
_SCHEMA_MAPS: Final = ("properties", "patternProperties", *DEFINITIONS)
_SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_LOWER_BOUNDS: Final = ("minimum", "exclusiveMinimum")
_SCHEMAS: Final = ("items", "additionalItems", "additionalProperties")

Schema = dict[str, Any] | bool


def inner_schemas(node: Mapping[str, Any], pointer: str) -> Iterator[tuple[str, object, str]]:
    """(keyword, schema, pointer) of each schema directly inside of one that was checked."""
    for keyword, value in node.items():
        where = child(pointer, keyword)
        if keyword in _SCHEMA_MAPS:
            yield from ((keyword, inner, child(where, name)) for name, inner in value.items())
        elif keyword in _SCHEMA_LISTS or (keyword == "items" and isinstance(value, list)):
            yield from ((keyword, inner, child(where, index)) for index, inner in enumerate(value))
        elif keyword in _SCHEMAS:
            yield keyword, value, where


class SchemaWalk:
    """One pass over a schema that checks it and copies it into the form the library takes."""

    def __init__(self, limits: GrammarLimits, *, close_objects: bool) -> None:
        self._limits = limits
        self._close_objects = close_objects
        self._num_nodes = 0
        self._num_pointer_chars = 0
        self.multiple = 1
        """Least common multiple of all multipleOf so far."""

    def copy(self, schema: object, pointer: str) -> Schema:
        """The schema in normal form. Raises SpecError."""
        self._num_nodes += 1
        if self._num_nodes > self._limits.max_schema_nodes:
            raise SpecError(f"the schema holds more than {self._limits.max_schema_nodes} schemas", pointer)
        self._num_pointer_chars += len(pointer)
        if self._num_pointer_chars > self._limits.max_pointer_chars:
            raise SpecError("names of properties are too long for the number of schemas below them", "")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise SpecError(f"{shown(schema)} is no schema; a schema is an object, true or false", pointer)
        copied: dict[str, Any] = {}
        for keyword, value in schema.items():
            if not _is_without_effect(schema, keyword, value):
                copied[keyword] = self._copy_keyword(schema, keyword, value, pointer)
        _check_optional_properties(schema, pointer, self._limits)
        if self._close_objects and "additionalProperties" not in schema and _has_properties(schema):
            copied["additionalProperties"] = False
        return copied

    def _copy_keyword(self, schema: dict[str, Any], keyword: str, value: object, pointer: str) -> object:
        where = child(pointer, keyword)
        if keyword in UNSUPPORTED:
            raise SpecError(f"the keyword {keyword} is not supported", where)
        if keyword == "$id" and pointer:
            raise SpecError("a base URI inside of a schema is not supported; refer by #/$defs/...", where)
        if keyword == "x-guidance":
            raise SpecError("options of the grammar library are not taken from schemas", where)
        if keyword in _SCHEMA_MAPS:
            return self._copy_map(keyword, value, where)
        if keyword in _SCHEMA_LISTS or (keyword == "items" and isinstance(value, list)):
            return self._copy_list(keyword, value, where)
        if keyword in _SCHEMAS:
            return self.copy(value, where)
        check = _CHECKS.get(keyword)
        if check is not None:
            if keyword in _LOWER_BOUNDS and _takes_integers_alone(schema.get("type")):
                value = lower_bound_of_integers(_as_number(value, where))
            value = check(self, value, where)
        if keyword == "minProperties":
            _check_min_properties(schema, value, where)
        return value

    def _copy_map(self, keyword: str, value: object, where: str) -> dict[str, Schema]:
        if not isinstance(value, dict):
            raise SpecError(f"{keyword} must be an object that holds schemas", where)
        if keyword not in DEFINITIONS and len(value) > self._limits.max_properties:
            raise SpecError(f"{keyword} has {len(value)} entries, at most {self._limits.max_properties}", where)
        if keyword == "patternProperties":
            for pattern in value:
                check_expression(pattern, self._limits, child(where, pattern))
        return {name: self.copy(item, child(where, name)) for name, item in value.items()}

    def _copy_list(self, keyword: str, value: object, where: str) -> list[Schema]:
        if not isinstance(value, list) or not value:
            raise SpecError(f"{keyword} must be a list of schemas that is not empty", where)
        if len(value) > self._limits.max_alternatives:
            raise SpecError(f"{keyword} has {len(value)} schemas, at most {self._limits.max_alternatives}", where)
        return [self.copy(item, child(where, index)) for index, item in enumerate(value)]

    def check_type(self, value: object, where: str) -> object:
        names = value if isinstance(value, list) else [value]
        if not names:
            raise SpecError("an empty list of types admits nothing", where)
        for index, name in enumerate(names):
            if name not in TYPES:
                place = child(where, index) if isinstance(value, list) else where
                raise SpecError(f"{shown(name)} is no type; the types are {', '.join(TYPES)}", place)
        return value

    def check_count(self, value: object, where: str) -> int:
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
            return int(value)
        raise SpecError(f"{shown(value)} is no count; it must be a whole number from 0", where)

    def check_lower(self, value: object, where: str) -> object:
        check_bound(_as_number(value, where), where, is_upper=False)
        return value

    def check_upper(self, value: object, where: str) -> object:
        check_bound(_as_number(value, where), where, is_upper=True)
        return value

    def check_multiple(self, value: object, where: str) -> object:
        """Steps that must be counted out in an automaton, which has as many states."""
        if not 0 < _as_number(value, where) < math.inf:
            raise SpecError(f"multipleOf {shown(value)} must be a number above 0", where)
        assert isinstance(value, int | float)
        fraction = Fraction(str(value))
        # Powers of ten only move the point: what counts is the digits.
        digits = int(fraction * 10 ** max(0, len(str(fraction.denominator)) * 4))
        while digits % 10 == 0:
            digits //= 10
        self.multiple = math.lcm(self.multiple, digits)
        if self.multiple > self._limits.max_multiple:
            raise SpecError(
                f"the least common multiple of the digits of all multipleOf is more than {self._limits.max_multiple}, "
                "which cannot be enforced",
                where,
            )
        return value

    def check_pattern(self, value: object, where: str) -> object:
        if not isinstance(value, str):
            raise SpecError(f"pattern {shown(value)} is no string", where)
        if value:
            check_expression(value, self._limits, where)
        return value

    def check_format(self, value: object, where: str) -> object:
        if value not in FORMATS:
            raise SpecError(f"the format {shown(value)} is not supported; these are: {', '.join(FORMATS)}", where)
        return value

    def check_required(self, value: object, where: str) -> object:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise SpecError("required must be a list of names", where)
        if len(value) > self._limits.max_properties:
            raise SpecError(f"required has {len(value)} names, at most {self._limits.max_properties}", where)
        return value

    def check_enum(self, value: object, where: str) -> object:
        if not isinstance(value, list) or not value:
            raise SpecError("enum must be a list that is not empty", where)
        for index, item in enumerate(value):
            self.check_literal(item, child(where, index))
        return value

    def check_literal(self, value: object, where: str) -> object:
        """A constant: its strings are forced and walked in one step."""
        if isinstance(value, str):
            if len(value.encode()) > self._limits.max_literal_bytes:
                raise SpecError(f"a constant string has more than {self._limits.max_literal_bytes} bytes", where)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            check_constant(value, where)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.check_literal(item, child(where, index))
        elif isinstance(value, dict):
            for name, item in value.items():
                self.check_literal(item, child(where, name))
        return value

    def check_dialect(self, value: object, where: str) -> object:
        if not isinstance(value, str) or value.rstrip("#") not in DIALECTS:
            raise SpecError(f"the dialect {shown(value)} is not supported; these are: {', '.join(DIALECTS)}", where)
        return value

    def check_reference(self, value: object, where: str) -> object:
        if not isinstance(value, str):
            raise SpecError(f"$ref {shown(value)} is no string", where)
        return value


_CHECKS: Final[dict[str, Callable[[SchemaWalk, object, str], object]]] = {
    "type": SchemaWalk.check_type,
    "const": SchemaWalk.check_literal,
    "enum": SchemaWalk.check_enum,
    "pattern": SchemaWalk.check_pattern,
    "format": SchemaWalk.check_format,
    "required": SchemaWalk.check_required,
    "multipleOf": SchemaWalk.check_multiple,
    "$ref": SchemaWalk.check_reference,
    "$id": SchemaWalk.check_reference,
    "$anchor": SchemaWalk.check_reference,
    "$schema": SchemaWalk.check_dialect,
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SchemaWalk.check_count
    ),
    **dict.fromkeys(_LOWER_BOUNDS, SchemaWalk.check_lower),
    **dict.fromkeys(("maximum", "exclusiveMaximum"), SchemaWalk.check_upper),
}


def _as_number(value: object, where: str) -> int | float:
    """Raises SpecError for what is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError(f"{shown(value)} is no number", where)
    return value


def _takes_integers_alone(types: object) -> bool:
    """Of all numbers."""
    names = types if isinstance(types, list) else [types]
    return "integer" in names and "number" not in names


def _check_optional_properties(schema: dict[str, Any], pointer: str, limits: GrammarLimits) -> None:
    """Names that may be left out, of one object. Raises SpecError."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) <= limits.max_optional_properties:
        return
    required = schema.get("required")
    names = set(properties) - set(required if isinstance(required, list) else ())
    if len(names) > limits.max_optional_properties:
        raise SpecError(
            f"{len(names)} properties are optional, at most {limits.max_optional_properties} may be; name the others "
            "in required",
            child(pointer, "properties"),
        )


def _has_properties(schema: dict[str, Any]) -> bool:
    return "properties" in schema or "patternProperties" in schema


def _is_without_effect(schema: dict[str, Any], keyword: str, value: object) -> bool:
    """Keywords the library would refuse although they constrain nothing where they stand."""
    if keyword == "uniqueItems":
        return value is False
    if keyword in ("then", "else"):
        return "if" not in schema
    if keyword in ("minContains", "maxContains"):
        return "contains" not in schema
    return False


def _check_min_properties(schema: dict[str, Any], value: object, where: str) -> None:
    """The library counts names, and one that is not in `properties` may come twice: only one such name is certain."""
    required = schema.get("required")
    num_certain = len(set(required)) + 1 if isinstance(required, list) else 1
    assert isinstance(value, int)
    if value > num_certain:
        raise SpecError(
            f"minProperties {value} cannot be enforced; name all but one of the properties in required", where
        )
