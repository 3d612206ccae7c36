import tracemalloc

import pytest
from fakes.grammar_tokenizer import make_test_backend
from fakes.matching import compiled, takes

from octavo.base.errors import ValidationError
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.prepared_schema import prepare_schema
from octavo.grammar.problem import SpecError

LIMITS = GrammarLimits()


def pointer_of(schema, **options):
    with pytest.raises(ValidationError) as caught:
        compiled(json=schema, **options)
    assert caught.value.parameter == "structured_outputs.json"
    assert f'at "{caught.value.value}"' in str(caught.value)
    return caught.value.value


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "stsring"}, "/type"),
        ({"type": "object", "properties": {"a": {"type": ["string", "x"]}}}, "/properties/a/type/1"),
        ({"type": "string", "pattern": "{"}, "/pattern"),
        ({"items": {"properties": {"a/b": {"pattern": "(?=a)b"}}}}, "/items/properties/a~1b/pattern"),
        ({"patternProperties": {"(?!x)": {}}}, "/patternProperties/(?!x)"),
        ({"properties": {"a": {"uniqueItems": True}}}, "/properties/a/uniqueItems"),
        ({"not": {}}, "/not"),
        ({"$defs": {"x": {"if": {}}}}, "/$defs/x/if"),
        ({"items": {"$ref": "#/$defs/x"}}, "/items/$ref"),
        ({"$ref": "http://127.0.0.1:9/x.json"}, "/$ref"),
        ({"$ref": "file:///etc/passwd"}, "/$ref"),
        ({"$ref": "#/properties", "properties": {}}, "/$ref"),
        ({"properties": {"a": {"$id": "http://x/", "type": "null"}}}, "/properties/a/$id"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema"),
        ({"enum": []}, "/enum"),
        ({"anyOf": []}, "/anyOf"),
        ({"anyOf": [{}, 3]}, "/anyOf/1"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"multipleOf": 999983}, "/multipleOf"),
        ({"minLength": -1}, "/minLength"),
        ({"maxItems": 1.5}, "/maxItems"),
        ({"maximum": True}, "/maximum"),
        ({"required": "a"}, "/required"),
        ({"properties": []}, "/properties"),
        ({"format": "iri"}, "/format"),
        ({"x-guidance": {"lenient": True}}, "/x-guidance"),
        ({"type": "object", "minProperties": 2}, "/minProperties"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "/minimum"),
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"const": None}]}}}, "/properties/a/oneOf"),
        ({"$defs": {"d": {"allOf": [{"maxProperties": 3, "properties": {"x": {}}}]}}, "items": {"$ref": "#/$defs/d"}},
         "/$defs/d/allOf/0/maxProperties"),
        ({"$ref": "#"}, ""),
        (False, ""),
    ],
)  # fmt: skip
def test_the_place_of_the_fault_is_named(schema, pointer):
    assert pointer_of(schema) == pointer


def test_keywords_without_effect_are_taken():
    schema = {
        "uniqueItems": False,
        "then": {},
        "minContains": 2,
        "maxLength": 2.0,
        "title": 5,
        "x-own": [1],
        "type": "string",
    }
    assert takes(compiled(json=schema), '"ab"')
    assert not takes(compiled(json=schema), '"abc"')


def test_names_of_properties_are_not_taken_for_keywords():
    assert takes(compiled(json={"properties": {"not": {"type": "null"}, "$ref": {}}}), '{"not":null,"$ref":1}')


def test_constants_are_not_taken_for_schemas():
    assert takes(compiled(json={"const": {"not": {"type": "nonsense"}}}), '{"not":{"type":"nonsense"}}')


def test_the_schema_that_was_given_stays_as_it_was():
    schema = {"properties": {"a": {"uniqueItems": False, "properties": {}}}}
    prepare_schema(schema, LIMITS, close_objects=True)
    assert schema == {"properties": {"a": {"uniqueItems": False, "properties": {}}}}


def test_objects_are_closed_on_request_where_they_say_nothing_of_further_names():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {}}}, "c": {"additionalProperties": True}},
    }
    closed = compiled(json=schema, disable_additional_properties=True)
    assert takes(closed, '{"a":{"b":1},"c":{"z":1}}')
    assert not takes(closed, '{"a":{"z":1}}')
    assert not takes(closed, '{"z":1}')
    assert takes(compiled(json=schema), '{"a":{"z":1},"z":1}')


def test_whitespace_is_bounded_free_of_choice_or_none():
    schema = {"type": "array", "items": {"type": "integer"}}
    assert takes(compiled(json=schema), "[\n  1,\n  2\n]")
    assert takes(compiled(json=schema), "[1,2]")
    assert not takes(compiled(json=schema), "[" + " " * 100 + "1]")
    assert not takes(compiled(json=schema, disable_any_whitespace=True), "[ 1]")
    assert takes(compiled(json=schema, whitespace_pattern=" ?"), "[ 1, 2]")
    assert not takes(compiled(json=schema, whitespace_pattern=" ?"), "[\n1]")


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "( {1,300}){1,300}"])
def test_a_bad_whitespace_pattern_is_refused(pattern):
    with pytest.raises(ValidationError):
        compiled(json={}, whitespace_pattern=pattern)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"anyOf": [{"const": i} for i in range(501)]}, "/anyOf"),
        ({"properties": {f"p{i}": {} for i in range(401)}}, "/properties"),
        ({"properties": {f"p{i}": {} for i in range(2001)}}, "/properties"),
        ({"const": "x" * 20_001}, "/const"),
        ({"enum": [["x" * 20_001]]}, "/enum/0/0"),
        ({"pattern": "a{20001}"}, "/pattern"),
        ({"allOf": [{"multipleOf": 101}, {"multipleOf": 103}]}, "/allOf/1/multipleOf"),
        ({"allOf": [{"multipleOf": 9973}, {"multipleOf": 10**4298 + 1}]}, "/allOf/1/multipleOf"),
    ],
)
def test_caps_are_refused_with_their_place(schema, pointer):
    assert pointer_of(schema) == pointer


def test_long_names_above_many_schemas_are_refused_without_much_memory():
    many = {"anyOf": [{"anyOf": [True] * 480} for _ in range(20)]}
    tracemalloc.start()
    try:
        assert "too long" in str(_refused({"properties": {"x" * 60_000: many}}))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_the_fault_is_found_in_a_large_schema():
    inner = {f"q{j}": {"type": "array", "items": {"properties": {"x": {"pattern": f"^x{j}"}}}} for j in range(15)}
    properties = {f"p{i}": {"type": "object", "properties": inner} for i in range(60)}
    properties["p30"] = {"items": {"oneOf": [{}, {}]}}
    assert pointer_of({"type": "object", "properties": properties}) == "/properties/p30/items/oneOf"


def test_deep_json_is_refused():
    assert "deeper than 100" in str(_refused({"const": _nested(101)}))


def _nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def _refused(schema):
    with pytest.raises(ValidationError) as caught:
        compiled(json=schema)
    return caught.value


def _chain(length, *, closed=False):
    """Definitions that refer to the next one each."""
    last = {"$ref": "#/$defs/d0"} if closed else {"type": "string"}
    inner = {f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(length)}
    return {"$defs": {**inner, f"d{length}": last}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("closed", [False, True])
def test_chains_of_references_are_bounded_before_the_library_walks_them(closed):
    compiled(json=_chain(20, closed=closed))
    assert "deep, counted through $ref" in str(_refused(_chain(300, closed=closed)))


def test_chains_through_parts_of_one_schema_are_bounded():
    properties = {f"p{i}": {"items": {"$ref": f"#/properties/p{i + 1}"}} for i in range(300)}
    with pytest.raises(SpecError, match="counted through"):
        prepare_schema({"properties": {**properties, "p300": {}}}, LIMITS)


def test_many_definitions_around_a_cycle_are_not_deep():
    definitions = {f"d{i}": {"properties": {"e": {"$ref": "#/$defs/expr"}}} for i in range(300)}
    expr = {"properties": {"left": {"$ref": "#/$defs/expr"}}}
    schema = {"$defs": {**definitions, "expr": expr}, "properties": {d: {"$ref": f"#/$defs/{d}"} for d in definitions}}
    prepare_schema(schema, LIMITS)


def test_anchors_and_the_document_s_own_name_are_followed():
    schema = {"$id": "http://x/y", "$defs": {"a": {"$anchor": "here", "type": "null"}}, "items": {"$ref": "#here"}}
    assert takes(compiled(json=schema), "[null]")
    assert not takes(compiled(json=schema), "[1]")
    by_name = {**schema, "items": {"$ref": "http://x/y#/$defs/a"}}
    assert not takes(compiled(json=by_name), "[1]")


def test_a_text_that_is_no_json_is_refused():
    from octavo.proto.structured import GrammarSpec

    with pytest.raises(ValidationError, match="not JSON"):
        make_test_backend().prepare(GrammarSpec("json", "{"))
