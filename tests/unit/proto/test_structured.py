"""Constraints of a text: exactly one, in one normal form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from octavo.base.errors import ValidationError
from octavo.proto.sampling import SamplingParams
from octavo.proto.structured import (
    MAX_GRAMMAR_BYTES,
    MAX_PREPARED_CHARS,
    GrammarSpec,
    PreparedGrammar,
    StructuredOutputsParams,
)

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {}}}


def test_a_schema_as_value_and_as_text_is_the_same_constraint() -> None:
    as_value = StructuredOutputsParams(json=SCHEMA)
    as_text = StructuredOutputsParams(json='{ "type": "object",\n "properties": {"b": {"type": "integer"}, "a": {}}}')
    assert as_value == as_text
    assert as_value.spec == GrammarSpec("json", '{"type":"object","properties":{"b":{"type":"integer"},"a":{}}}')


def test_json_object_is_the_schema_of_any_object() -> None:
    assert StructuredOutputsParams(json_object=True).spec == StructuredOutputsParams(json={"type": "object"}).spec


def test_choices_travel_as_json() -> None:
    assert StructuredOutputsParams(choice=["a", 'b"', "a"]).spec == GrammarSpec("choice", '["a","b\\""]')


def test_options_are_part_of_the_grammar() -> None:
    params = StructuredOutputsParams(json_object=True, disable_any_whitespace=True, whitespace_pattern=" ?")
    assert params.spec.options == (("disable_any_whitespace", True), ("whitespace_pattern", " ?"))


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({}, "structured_outputs"),
        ({"json": None}, "structured_outputs"),
        ({"json": "{}", "regex": "a"}, "structured_outputs"),
        ({"json": ""}, "structured_outputs.json"),
        ({"json": "not json"}, "structured_outputs.json"),
        ({"json": "[1]"}, "structured_outputs.json"),
        ({"json": "[" * 100_000}, "structured_outputs.json"),
        ({"json": '{"a":NaN}'}, "structured_outputs.json"),
        ({"json": {"a": float("inf")}}, "structured_outputs.json"),
        ({"json": {"a": object()}}, "structured_outputs.json"),
        ({"json": '{"a":"\\ud800"}'}, "structured_outputs.json"),
        ({"json": {"a": "x" * MAX_GRAMMAR_BYTES}}, "structured_outputs.json"),
        ({"regex": ""}, "structured_outputs.regex"),
        ({"regex": "a\0"}, "structured_outputs.regex"),
        ({"regex": 7}, "structured_outputs.regex"),
        ({"grammar": " "}, "structured_outputs.grammar"),
        ({"choice": []}, "structured_outputs.choice"),
        ({"choice": [""]}, "structured_outputs.choice[0]"),
        ({"choice": "ab"}, "structured_outputs.choice"),
        ({"json_object": False}, "structured_outputs.json_object"),
        ({"structural_tag": {}}, "structured_outputs.structural_tag"),
        ({"json_object": True, "disable_any_whitespace": 1}, "structured_outputs.disable_any_whitespace"),
        ({"regexp": "a"}, "structured_outputs.regexp"),
    ],
)
def test_what_is_no_constraint_is_refused_by_name(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(ValidationError) as error:
        StructuredOutputsParams(**fields)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    "fields",
    [{"json": SCHEMA}, {"regex": "a+"}, {"choice": ["a", "b"]}, {"json_object": True}, {"grammar": 'start: "a"'}],
)
def test_params_survive_the_way_to_the_engine(fields: dict[str, Any]) -> None:
    sampling = SamplingParams(
        structured_outputs=fields, structured_after=[5, 5], thinking_token_budget=3, thinking_end_token_ids=[5, 5]
    )
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(sampling), type=SamplingParams)
    assert decoded == sampling
    assert decoded.structured_outputs is not None
    assert decoded.structured_outputs.spec == StructuredOutputsParams(**fields).spec


def test_a_budget_of_minus_one_is_none() -> None:
    assert SamplingParams(thinking_token_budget=-1).thinking_token_budget is None


def test_sampling_params_refuse_a_constraint_of_another_type() -> None:
    with pytest.raises(ValidationError, match="mapping of its fields"):
        SamplingParams(structured_outputs="json")  # type: ignore[arg-type]


def test_a_prepared_grammar_has_a_limit_on_the_wire():
    longest = PreparedGrammar(text="x" * MAX_PREPARED_CHARS, num_bytes=1)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(longest), type=PreparedGrammar) == longest
    data = msgspec.msgpack.encode(PreparedGrammar(text=longest.text + "x", num_bytes=1))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=PreparedGrammar)
