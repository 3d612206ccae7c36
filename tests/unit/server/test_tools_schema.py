import pytest

from octavo.server.tools_schema import find_fault, locate

FINE = {
    "$defs": {"n": {"type": ["integer", "null"]}},
    "type": "object",
    "properties": {"a/b": {"$ref": "#/$defs/n"}, "c": {"type": "array", "items": {"enum": [1]}, "uniqueItems": True}},
    "required": ["c"],
    "not": {"anyOf": [{"format": "odd"}, True]},
    "x-anything": 5,
}


def test_what_is_a_schema_is_fine_whatever_a_grammar_could_enforce():
    assert find_fault(FINE) is None
    assert find_fault({}) is None


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("object", ""),
        ({"type": "stsring"}, "/type"),
        ({"type": []}, "/type"),
        ({"properties": {"a": {"type": ["x"]}}}, "/properties/a/type"),
        ({"properties": {"a/b~": {"type": 5}}}, "/properties/a~1b~0/type"),
        ({"properties": []}, "/properties"),
        ({"anyOf": [{}, {"items": [{"required": "a"}]}]}, "/anyOf/1/items/0/required"),
        ({"oneOf": {}}, "/oneOf"),
        ({"additionalProperties": "yes"}, "/additionalProperties"),
        ({"pattern": 5}, "/pattern"),
        ({"enum": "a"}, "/enum"),
    ],
)
def test_what_is_none_is_found_with_its_place(schema, pointer):
    assert find_fault(schema)[0] == pointer


def test_nesting_is_bounded():
    schema = {}
    for _ in range(70):
        schema = {"items": schema}
    assert "deeper" in find_fault(schema)[1]


def test_a_place_in_a_constraint_is_one_in_the_schema_it_was_made_of():
    constraint = {"format": {"tags": [{"json_schema": {}}, {"json_schema": FINE}]}}
    assert locate("/format/tags/1/json_schema/properties/a~1b", constraint, [{"a": 1}, FINE]) == (
        1,
        "/properties/a~1b",
    )
    assert locate("/format/tags/1/json_schema", constraint, [FINE]) == (0, "")
    assert locate("/format/tags/0", constraint, [FINE]) is None
    assert locate("/format/none/0", constraint, [FINE]) is None
