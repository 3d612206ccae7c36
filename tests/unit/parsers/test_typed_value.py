import time

import pytest

from octavo.parsers.typed_value import choices_of, json_of, types_of

SCHEMA = {
    "properties": {
        "plain": {"type": "integer"},
        "several": {"type": ["string", "null"]},
        "listed": {"enum": ["a", 1, None]},
        "fixed": {"const": "x"},
        "either": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/size"}]},
        "pointed": {"$ref": "#/$defs/size"},
        "endless": {"$ref": "#/$defs/loop"},
        "elsewhere": {"$ref": "http://x/y"},
        "odd": {"type": 5, "anyOf": "no"},
        "anything": {},
        "bare": True,
    },
    "$defs": {"size": {"type": "number", "enum": [1, 2]}, "loop": {"$ref": "#/$defs/loop"}, "color": {"enum": ["r"]}},
}


@pytest.mark.parametrize(
    ("parameter", "types"),
    [
        ("plain", {"integer"}),
        ("several", {"string", "null"}),
        ("listed", {"string", "integer", "null"}),
        ("fixed", {"string"}),
        ("either", {"boolean", "number"}),
        ("pointed", {"number"}),
        ("endless", set()),
        ("elsewhere", set()),
        ("odd", set()),
        ("anything", set()),
        ("bare", set()),
        ("absent", set()),
    ],
)
def test_types_come_from_the_schema(parameter, types):
    assert types_of(SCHEMA, parameter) == types


def test_a_tool_that_takes_nothing_or_has_an_odd_schema_says_nothing():
    assert types_of(None, "a") == types_of({}, "a") == types_of({"properties": []}, "a") == frozenset()


def test_choices_are_texts_that_are_listed():
    assert choices_of({"properties": {"a": {"enum": ["x", "y"]}}}, "a") == ["x", "y"]
    assert choices_of({"properties": {"a": {"$ref": "#/$defs/color"}}, "$defs": SCHEMA["$defs"]}, "a") == ["r"]
    for parameter in ("listed", "plain", "endless", "bare", "absent"):
        assert choices_of(SCHEMA, parameter) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", "12"),
        (" 1.50 ", "1.50"),
        ('{"a": [1,  2]}', '{"a": [1,  2]}'),
        ("True", "true"),
        ("None", "null"),
        ("{'a': (1, 'x')}", '{"a": [1, "x"]}'),
        ("NaN", '"NaN"'),
        (" twelve\n", '" twelve\\n"'),
        ("[1, ", '"[1, "'),
        ("[" * 50_000, '"' + "[" * 50_000 + '"'),
    ],
)
def test_values_become_json(text, expected):
    assert json_of(text) == expected


def test_references_in_circles_are_followed_once():
    branches = [{"$ref": "#/$defs/x"}] * 40 + [{"type": "integer"}]
    schema = {"$defs": {"x": {"anyOf": branches}}, "properties": {"a": {"$ref": "#/$defs/x"}}}
    start_s = time.thread_time()
    assert types_of(schema, "a") == {"integer"}
    assert time.thread_time() - start_s < 10
