import json
import logging

import pytest

from octavo.base.errors import ConfigError, ValidationError
from octavo.config.answer_options import AnswerConfig
from octavo.proto.structured import StructuredOutputsParams
from octavo.server.errors import ApiError
from octavo.server.structured import Constraint
from octavo.server.tools import ToolUse
from octavo.server.turn_formats import OutputFormats, check_parser_names
from octavo.server.turn_reasoning import ReasoningState

HERMES = '{% if tools %}<tool_call>{"name": <name>, "arguments": <args>}</tool_call>{% endif %}'
QWEN3 = HERMES + "{{ '<think>' }}{{ '</think>' }}"
FUNCTIONS = [
    {"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    {"name": "b"},
]
REGEX = Constraint(StructuredOutputsParams(regex="a"), "structured_outputs", "structured_outputs.regex")
FORMAT = Constraint(StructuredOutputsParams(json_object=True), "response_format", "response_format")


def formats(template=HERMES, **options):
    return OutputFormats.choose(AnswerConfig(**options), template, template)


def use(choice, functions=FUNCTIONS, *, parallel=True):
    shown = [{"type": "function", "function": function} for function in FUNCTIONS]
    names = [tool["function"]["name"] for tool in shown]
    return ToolUse(shown=shown, callable=functions, choice=choice, parallel=parallel, names=names)


def strict(functions):
    return [functions[0] | {"strict": True}, *functions[1:]]


def tag_of(plan):
    return plan.constraint.params.structural_tag


def test_parsers_are_found_in_the_template():
    found = formats(QWEN3)
    assert (found.tool, found.reasoning) == ("hermes", "qwen3")
    assert formats("").tool is None
    assert formats(QWEN3, tool_call_parser="none", reasoning_parser="none").reasoning is None


def test_a_parser_that_is_not_known_ends_the_start_with_the_names_of_those_that_are():
    with pytest.raises(ConfigError) as refused:
        check_parser_names(AnswerConfig(tool_call_parser="hermse", reasoning_parser="qwen33"))
    assert [problem.option for problem in refused.value.problems] == ["tool_call_parser", "reasoning_parser"]
    assert "hermes" in str(refused.value)
    check_parser_names(AnswerConfig(tool_call_parser="none", reasoning_parser="deepseek_r1"))


def test_a_choice_that_the_template_does_not_bear_out_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "octavo"):
        assert formats("plain", tool_call_parser="hermes").tool == "hermes"
        assert formats(QWEN3, reasoning_parser="deepseek_r1").reasoning == "deepseek_r1"
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"template": "plain"}, "--tool-call-parser"),
        ({"enable_auto_tool_choice": False}, "--no-enable-auto-tool-choice"),
    ],
)
def test_calls_of_the_models_own_choice_need_a_parser_and_leave(options, flag):
    with pytest.raises(ApiError) as refused:
        formats(**options).plan(use("auto"), None)
    assert refused.value.param == "tool_choice"
    assert '"auto"' in refused.value.message
    assert flag in refused.value.message
    assert 'use "required"' in refused.value.message


@pytest.mark.parametrize("choice", ["required", "named"])
def test_forced_calls_are_constrained_whatever_the_template(choice):
    for template in (HERMES, "plain"):
        plan = formats(template).plan(use(choice, FUNCTIONS[:1]), None)
        assert plan.constraint.field == "tools"
        assert '"type":"integer"' in tag_of(plan)
        assert plan.parser_factory(ReasoningState.OPEN) is not None


def test_free_calls_are_constrained_only_where_a_tool_is_strict():
    assert formats().plan(use("auto"), None).constraint is None
    loose = [FUNCTIONS[0], FUNCTIONS[1] | {"strict": True}]
    assert '"type":"integer"' in tag_of(formats().plan(use("auto", strict(FUNCTIONS)), None))
    assert '"type":"integer"' not in tag_of(formats().plan(use("auto", loose), None))


@pytest.mark.parametrize(("level", "follows"), [("function", False), ("parameter", True)])
def test_the_operator_may_constrain_all_free_calls(level, follows):
    plan = formats(tool_strict_level=level).plan(use("auto"), None)
    assert ('"type":"integer"' in tag_of(plan)) is follows


def test_forced_calls_exclude_a_constraint_of_the_requests_own_but_not_a_format_of_text():
    for choice in ("required", "named"):
        with pytest.raises(ApiError) as refused:
            formats().plan(use(choice), REGEX)
        assert refused.value.param == "structured_outputs"
    assert '"or"' not in tag_of(formats().plan(use("required"), FORMAT))


@pytest.mark.parametrize(
    ("own", "form"),
    [
        (FORMAT.params, {"type": "json_schema", "json_schema": {"type": "object"}}),
        (REGEX.params, {"type": "regex", "pattern": "a"}),
        (StructuredOutputsParams(choice=["x", "1+1"]), {"type": "regex", "pattern": r"x|1\+1"}),
    ],
)
def test_the_model_chooses_between_calls_and_text_of_the_form_asked_for(own, form):
    plan = formats().plan(use("auto"), Constraint(own, "response_format", "response_format"))
    tag = json.loads(tag_of(plan))
    assert tag["format"]["type"] == "or"
    assert tag["format"]["elements"][0] == form
    assert tag["format"]["elements"][1]["type"] == "tags_with_separator"


def test_a_form_that_cannot_stand_beside_calls_is_refused():
    own = Constraint(StructuredOutputsParams(grammar='start: "a"'), "guided_grammar", "guided_grammar")
    with pytest.raises(ApiError) as refused:
        formats().plan(use("auto"), own)
    assert refused.value.param == "guided_grammar"
    assert formats().plan(ToolUse(), own).constraint is own


def test_reasoning_that_the_prompt_has_ended_is_not_looked_for():
    plan = formats(QWEN3).plan(ToolUse(), None)
    assert plan.parser_factory(ReasoningState.OVER) is None
    assert plan.parser_factory(ReasoningState.INSIDE) is not None
    assert formats("").plan(ToolUse(), None).parser_factory(ReasoningState.OVER) is None


def test_a_fault_that_a_grammar_finds_is_one_of_the_tool_that_has_it():
    bad = {"name": "b", "parameters": {"type": "object", "properties": {"y": {"not": {}}}}}
    functions = [FUNCTIONS[0], bad]
    shown = [{"type": "function", "function": function} for function in functions]
    plan = formats().plan(
        ToolUse(shown=shown, callable=[bad], choice="named", names=[function["name"] for function in functions]), None
    )
    tag = plan.constraint.params
    pointer = "/format/tags/0/content/json_schema/properties/y/not"
    name = "structured_outputs.structural_tag"
    error = ValidationError(f'{name} at "{pointer}": is not supported', parameter=name, value=pointer)
    refused = plan.constraint.as_error(error)
    assert '"not"' in tag.structural_tag
    assert refused.param == "tools"
    assert refused.message == 'tools[1].function.parameters at "/properties/y/not": is not supported'


def test_a_fault_in_the_texts_own_schema_is_one_of_its_field():
    own = Constraint(StructuredOutputsParams(json={"not": {}}), "response_format", "response_format.json_schema.schema")
    constraint = formats().plan(use("auto"), own).constraint
    pointer, name = "/format/elements/0/json_schema/not", "structured_outputs.structural_tag"
    error = ValidationError(f'{name} at "{pointer}": is not supported', parameter=name, value=pointer)
    refused = constraint.as_error(error)
    assert refused.param == "response_format"
    assert refused.message == 'response_format.json_schema.schema at "/not": is not supported'


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_tools_that_make_too_large_a_grammar_are_the_fault_of_tools(choice):
    large = [{"name": f"f{i}", "parameters": {"title": "x" * 4000}, "strict": True} for i in range(40)]
    with pytest.raises(ApiError, match=r"^tools: .* at most 131072") as caught:
        formats().plan(use(choice, large), None)
    assert caught.value.param == "tools"
