import json
import string

import pytest
from fakes.matching import compiled, takes

from octavo.base.errors import ValidationError
from octavo.server.api.completion_types import CompletionRequest
from octavo.server.errors import ApiError
from octavo.server.structured import as_tag, behind_reasoning, form_of, of_constraint, read_constraint

SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
WRAPPED = {"type": "json_schema", "json_schema": {"name": "pair", "schema": SCHEMA, "strict": True}}
LARGE = {"description": "x" * 200_000}


def read(**fields):
    return read_constraint(CompletionRequest(prompt="a", **fields))


def refusal(**fields):
    with pytest.raises(ApiError) as refused:
        read(**fields)
    assert refused.value.status == 400
    return refused.value


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"response_format": {"type": "json_object"}}, "json", '{"type":"object"}'),
        ({"response_format": WRAPPED}, "json", json.dumps(SCHEMA, separators=(",", ":"))),
        ({"structured_outputs": {"json": SCHEMA}}, "json", json.dumps(SCHEMA, separators=(",", ":"))),
        ({"structured_outputs": {"regex": "a+", "backend": "xgrammar"}}, "regex", "a+"),
        ({"guided_json": json.dumps(SCHEMA)}, "json", json.dumps(SCHEMA, separators=(",", ":"))),
        ({"guided_regex": "[0-9]"}, "regex", "[0-9]"),
        ({"guided_choice": ["x", "y"], "guided_decoding_backend": "outlines"}, "choice", '["x","y"]'),
        ({"guided_grammar": "root ::= x"}, "grammar", "root ::= x"),
        ({"guided_json_object": True}, "json", '{"type":"object"}'),
    ],
)
def test_every_way_to_ask_comes_to_one_grammar(fields, kind, text):
    constraint = read(**fields)
    assert constraint.field == next(iter(fields))
    assert constraint.params.spec[:2] == (kind, text)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"response_format": {"type": "text"}},
        {"guided_json_object": False},
        {"guided_decoding_backend": "auto"},
    ],
)
def test_what_asks_for_nothing_is_no_constraint(fields):
    assert read(**fields) is None


def test_a_structural_tag_is_passed_on_whole():
    tag = {"type": "structural_tag", "format": {"type": "any_text"}}
    assert json.loads(read(response_format=tag).params.structural_tag) == tag


def test_the_old_pattern_for_blanks_goes_with_the_old_schema():
    assert read(guided_json={}, guided_whitespace_pattern=" ?").params.whitespace_pattern == " ?"
    assert refusal(guided_whitespace_pattern=" ?").param == "guided_whitespace_pattern"


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"type": "foo"},
        {"type": ["text"]},
        {"type": "json_schema"},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"name": "x"}},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": "not json"}},
        {"type": "structural_tag", "\ud800": 1},
    ],
)
def test_a_wrong_response_format_is_named(value):
    assert refusal(response_format=value).param == "response_format"


@pytest.mark.parametrize(
    ("fields", "begin"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": LARGE}}},
            "response_format.json_schema.schema: has",
        ),
        ({"response_format": {"type": "structural_tag", **LARGE}}, "response_format: has"),
        ({"guided_json": LARGE}, "guided_json: has"),
        ({"structured_outputs": {"json": LARGE}}, "structured_outputs.json="),
    ],
)
def test_a_constraint_that_is_too_large_is_called_by_its_own_name_alone(fields, begin):
    error = refusal(**fields)
    assert error.message.startswith(begin)
    assert error.message.count("structured_outputs") == begin.count("structured_outputs")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"regex": ""},
        {"choice": []},
        {"choice": [""]},
        {"json": ""},
        {"json": None},
        {"json": {}, "regex": "a"},
        {"regex": "a", "backend": "none/such"},
        {"rgex": "a"},
    ],
)
def test_wrong_structured_outputs_are_named(value):
    error = refusal(structured_outputs=value)
    assert error.param == "structured_outputs"
    assert error.message.startswith("structured_outputs")


def test_an_unknown_back_end_is_refused_in_the_old_field_too():
    assert refusal(guided_decoding_backend="none/such").param == "guided_decoding_backend"


@pytest.mark.parametrize(
    "other", [{"structured_outputs": {"regex": "a"}}, {"guided_regex": "a"}, {"guided_json_object": True}]
)
def test_two_constraints_exclude_each_other(other):
    error = refusal(response_format={"type": "json_object"}, **other)
    assert "exactly one" in error.message


def test_what_the_engine_says_of_a_grammar_is_said_of_the_field_that_asked_for_it():
    constraint = read(guided_regex="(")
    with pytest.raises(ApiError) as refused, of_constraint(constraint):
        raise ValidationError('structured_outputs.regex at "/a": is not closed', parameter="structured_outputs.regex")
    assert refused.value.param == "guided_regex"
    assert refused.value.message == 'guided_regex at "/a": is not closed'
    with pytest.raises(ValidationError), of_constraint(constraint):
        raise ValidationError("too long", parameter="input_tokens")


def test_choices_within_a_tag_are_the_only_texts_whatever_characters_they_have():
    choices = [*string.punctuation, "a\nb", "x\ty", "-a&&b~~c", "a b#c", "\x01é/\\", '{"a": [1]}']
    grammar = compiled(structural_tag={"format": form_of(read(guided_choice=choices).params)})
    assert all(takes(grammar, choice) for choice in choices)
    assert not any(takes(grammar, text) for text in ("x", "a", "a  b#c", "\\."))


def test_a_constraint_too_large_behind_reasoning_is_called_by_its_own_name_alone():
    constraint = read(guided_regex="a")
    with pytest.raises(ApiError) as refused, behind_reasoning(constraint):
        as_tag({"type": "regex", "pattern": "x: y" * 60_000}, constraint.params)
    assert refused.value.param == "guided_regex"
    assert refused.value.message == "guided_regex: behind reasoning it has 240064 bytes, at most 131072 are taken"
