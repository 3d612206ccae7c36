"""JSON schemas of every kind that masks enforce, drawn with a seed, whose instances are short."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

PATTERNS = (r"^[A-Z]{2}-[0-9]{1,3}$", r"^(re|un)?do(ne)?$", r"^#[0-9a-f]{6}$", r"a+b{1,2}$", r"^[^\"\\]{1,6}$", r"x.y")
"""Read alike by ECMA-262 and by Python."""
FORMATS = ("date-time", "time", "date", "ipv4", "ipv6", "uuid", "duration", "email", "hostname", "uri")
NAMES = ("id", "na me", 'quo"ted', "line\nbreak", "back\\slash", "ünï", "$ref", "a/b~c", "", "😀", "tab\t", "type")
CONSTANTS = (None, True, 0, -1, 2.5, "", "yes", 'a "word"', "new\nline", "é", [], [1, "1"], {"k": None}, "1", 1)


def draw_schemas(seed: int, num_schemas: int) -> list[Schema]:
    """Objects and arrays mostly; equal for equal seeds."""
    rng = random.Random(seed)
    return [_Drawing(rng).document() for _ in range(num_schemas)]


class _Drawing:
    """One document."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._definitions: dict[str, Schema] = {}

    def document(self) -> Schema:
        schema = dict(self._rng.choice((self._object, self._object, self._array, self._tuple, self._union))(0))
        if self._definitions:
            schema["$defs"] = self._definitions
        return schema

    def _any(self, depth: int) -> Schema:
        leaves: list[Callable[[int], Schema]] = [
            self._text, self._pattern, self._format, self._integer, self._steps, self._enum, self._const, self._types,
        ]  # fmt: skip
        inner = [self._object, self._array, self._tuple, self._union, self._map, self._merged, self._reference]
        return self._rng.choice(leaves if depth > 1 else leaves + inner)(depth)

    # ---- without anything inside ------------------------------------------------------------------------------------

    def _text(self, _: int) -> Schema:
        low = self._rng.randint(0, 3)
        return {"type": "string", "minLength": low, "maxLength": low + self._rng.randint(0, 9)}

    def _pattern(self, _: int) -> Schema:
        return {"type": "string", "pattern": self._rng.choice(PATTERNS), "maxLength": 12}

    def _format(self, _: int) -> Schema:
        return {"type": "string", "format": self._rng.choice(FORMATS), "maxLength": 40}

    def _integer(self, _: int) -> Schema:
        low = self._rng.randint(-1200, 1200)
        kinds = self._rng.choice((("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")))
        return {"type": "integer", kinds[0]: low, kinds[1]: low + self._rng.choice((2, 9, 130, 5000))}

    def _steps(self, _: int) -> Schema:
        step = self._rng.choice((0.25, 0.5, 3, 7, 10))
        return {"type": "number", "multipleOf": step, "minimum": -4 * step, "maximum": self._rng.choice((2, 40)) * step}

    def _enum(self, _: int) -> Schema:
        return {"enum": self._rng.sample(CONSTANTS, self._rng.randint(1, 5))}

    def _const(self, _: int) -> Schema:
        return {"const": self._rng.choice(CONSTANTS)}

    def _types(self, _: int) -> Schema:
        types = self._rng.sample(["null", "boolean", "integer", "string"], self._rng.randint(1, 3))
        return {"type": types, "minimum": 0, "maximum": 99, "maxLength": 5}

    # ---- with schemas inside ----------------------------------------------------------------------------------------

    def _object(self, depth: int) -> Schema:
        names = self._rng.sample(NAMES, self._rng.randint(1, 3))
        schema: Schema = {
            "type": "object",
            "properties": {name: self._any(depth + 1) for name in names},
            "required": self._rng.sample(names, self._rng.randint(0, len(names))),
        }
        others = self._rng.randrange(4)
        if others < 2:
            # The number of names is bounded, which can be enforced where all that are described are required.
            schema |= {"required": names, "maxProperties": len(names) + 1}
        if others == 0:
            schema["additionalProperties"] = {"type": "boolean"}  # under a name of any length: some do not end
        else:
            schema["additionalProperties"] = False
        if others == 1:
            schema["patternProperties"] = {"^p[0-9]$": {"type": "integer", "minimum": 0, "maximum": 9}}
        return schema

    def _map(self, depth: int) -> Schema:
        names = {"^[a-z]{1,8}$": self._any(depth + 1)}
        others = {"patternProperties": names, "additionalProperties": False}
        return {"type": "object", **others, "minProperties": 1, "maxProperties": 2}

    def _array(self, depth: int) -> Schema:
        low = self._rng.randint(0, 2)
        return {"type": "array", "items": self._any(depth + 1), "minItems": low, "maxItems": low + 1}

    def _tuple(self, depth: int) -> Schema:
        items = [self._any(depth + 1) for _ in range(self._rng.randint(1, 3))]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": self._rng.randint(0, len(items))}

    def _union(self, depth: int) -> Schema:
        if self._rng.random() < 0.5:
            return {"anyOf": [self._any(depth + 1), self._any(depth + 1)]}
        tags = self._rng.sample(["cat", "dog", 'o"x'], 2)
        return {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": tag}, "of": self._any(depth + 1)},
                    "required": ["kind", "of"],
                    "additionalProperties": False,
                }
                for tag in tags
            ]
        }

    def _merged(self, depth: int) -> Schema:
        low = self._rng.randint(0, 50)
        first = {"type": "object", "properties": {"a": {"type": "integer", "minimum": low}}, "required": ["a"]}
        second = {
            "properties": {"a": {"maximum": low + 60}, "b": self._any(depth + 1)},
            "required": ["b"],
            "maxProperties": 2,
        }
        return {"allOf": [first, second]}

    def _reference(self, depth: int) -> Schema:
        name = self._rng.choice(["node", "a/b", "c~d%"])
        pointer = "#/$defs/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
        if name not in self._definitions:
            self._definitions[name] = {"type": "null"}
            inner = self._any(depth + 1)
            again = {"type": "array", "items": {"$ref": pointer}, "maxItems": 1}
            node = {"type": "object", "properties": {"v": inner, "next": again}, "required": ["v"]}
            self._definitions[name] = {**node, "additionalProperties": False}
        return {"$ref": pointer}
