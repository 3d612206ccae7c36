"""Texts drawn from masks are valid by an independent validator."""

import json

import jsonschema
import numpy as np
import pytest
from fakes.matching import compiled, random_text

SCHEMAS = {
    "names with quotes and newlines": {
        "type": "object",
        "properties": {'a"b': {"type": "integer"}, "c\nd": {"type": "null"}, "é\\": {"type": "boolean"}},
        "required": ['a"b', "c\nd", "é\\"],
        "additionalProperties": False,
    },
    "further names do not repeat those that are known": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "name": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": {"type": "string", "maxLength": 3},
    },
    "patterns of names beside names": {
        "type": "object",
        "properties": {"x1": {"type": "boolean"}},
        "patternProperties": {"^x": {"type": "boolean"}, "^y": {"type": "integer"}},
        "additionalProperties": {"type": "null"},
    },
    "constants of mixed types": {"enum": [1, "1", None, True, {"a": [1, "x"]}, [], 1.5, -0.25]},
    "ranges around zero": {"type": "number", "minimum": -0.5, "exclusiveMaximum": 0.25},
    "negative integers": {"type": "integer", "exclusiveMinimum": -12, "maximum": -3},
    "large ranges": {"type": "integer", "minimum": 999, "maximum": 1000001},
    "steps": {"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 100},
    "decimal steps": {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 3},
    "oneOf with tags": {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "integer"}}, "required": ["k", "v"]},
            {"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "null"}}, "required": ["k"]},
        ]
    },
    "anyOf beside other keywords": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"const": 1}}, "required": ["b"]}],
        "additionalProperties": False,
    },
    "allOf": {
        "allOf": [
            {"properties": {"a": {"minimum": 2}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer", "maximum": 9}}},
        ],
        "type": "object",
    },
    "tuples": {"prefixItems": [{"type": "integer"}, {"enum": ["x"]}], "items": False, "minItems": 1, "type": "array"},
    "arrays with bounds": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
    "recursion": {
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
                           "required": ["v"], "additionalProperties": False}},
        "$ref": "#/$defs/node",
    },
    "lengths count characters": {"type": "string", "minLength": 2, "maxLength": 4},
    "patterns": {"type": "string", "pattern": r"^[A-Z][a-z]{1,3}-\d+$"},
    "patterns and lengths": {"type": "string", "pattern": "a.*b", "maxLength": 6},
    "a map with one entry or more": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
    "a map with few entries": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
    "several types": {"type": ["integer", "null", "string"], "minimum": 3, "maxLength": 2},
    "names that are required and not described": {"type": "object", "required": ["q", "r"], "maxProperties": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_texts_drawn_from_masks_are_valid(name):
    schema = SCHEMAS[name]
    validator = jsonschema.Draft202012Validator(schema)
    grammar = compiled(json=schema)
    rng = np.random.default_rng(7)
    texts = [random_text(grammar.start(), rng, max_tokens=300, short_after=15) for _ in range(12)]
    ended = [text for text in texts if text is not None]

    assert len(ended) >= 6
    for text in ended:
        assert list(validator.iter_errors(json.loads(text))) == [], text
