"""Constraints as the grammar compiler reads them: what they admit is what the parser of the format reads as calls."""

import json
import tracemalloc

import numpy as np
import pytest
from fakes.grammar_tokenizer import make_test_backend
from fakes.matching import random_text, takes
from fakes.tool_outputs import replay

from octavo.base.errors import ValidationError
from octavo.parsers.interface import ToolSpec
from octavo.parsers.registry import TOOL_PARSERS, make_parser

TOOLS = [
    ToolSpec(
        "lamp",
        {
            "type": "object",
            "properties": {"on": {"type": "boolean"}, "level": {"enum": [1, 22]}, "room": {"$ref": "#/$defs/room"}},
            "required": ["on", "room"],
            "additionalProperties": False,
            "$defs": {"room": {"enum": ["hall", "den"]}},
        },
    ),
    ToolSpec("now"),
]
ARGS_TEMPLATE = "[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}"
LAMP, NOW = '{"on": true, "room": "den"}', "{}"
QWEN_LAMP = (
    "<tool_call>\n<function=lamp>\n<parameter=on>\ntrue\n</parameter>\n"
    "<parameter=room>\nden\n</parameter>\n</function>\n</tool_call>"
)
QWEN_NOW = "<tool_call>\n<function=now>\n</function>\n</tool_call>"


def hermes(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def llama(name, arguments):
    return f'{{"name": "{name}", "parameters": {arguments}}}'


def mistral(name, arguments):
    return f'{{"name": "{name}", "arguments": {arguments}}}'


TWO_CALLS = {
    "hermes": hermes("lamp", LAMP) + "\n" + hermes("now", NOW),
    "llama3_json": llama("lamp", LAMP) + "; " + llama("now", NOW),
    "mistral": f"[TOOL_CALLS][{mistral('lamp', LAMP)}, {mistral('now', NOW)}]",
    "pythonic": f"[{llama('lamp', LAMP)}, {llama('now', NOW)}]",
    "qwen3_coder": f"{QWEN_LAMP}\n{QWEN_NOW}",
    "json_call": f"[{llama('lamp', LAMP)}, {llama('now', NOW)}]",
}
ONE_CALL = {
    "hermes": hermes("lamp", LAMP),
    "llama3_json": llama("lamp", LAMP),
    "mistral": f"[TOOL_CALLS][{mistral('lamp', LAMP)}]",
    "pythonic": f"[{llama('lamp', LAMP)}]",
    "qwen3_coder": QWEN_LAMP,
    "json_call": f"[{llama('lamp', LAMP)}]",
}
each_format = pytest.mark.parametrize("name", TOOL_PARSERS)
each_guided_format = pytest.mark.parametrize(
    "name", [name for name in TOOL_PARSERS if name not in ("pythonic", "json_call")]
)


def grammar(name, *, required, parallel=True, template="", tools=TOOLS):
    params = TOOL_PARSERS[name].constraint(tools, required=required, parallel=parallel, chat_template=template)
    backend = make_test_backend()
    return backend.compile(backend.prepare(params.spec))


def calls_in(name, text):
    return replay(make_parser(tool=TOOL_PARSERS[name].forced_parser, reasoning=None, tools=TOOLS), [text])


def check_calls(found):
    for call in found.calls:
        assert call.is_complete
        arguments = json.loads(call.arguments)
        if call.name == "now":
            assert arguments == {}
        else:
            assert call.name == "lamp"
            assert isinstance(arguments["on"], bool)
            assert arguments["room"] in ("hall", "den")
            assert set(arguments) <= {"on", "room", "level"}


@each_format
def test_required_admits_calls_and_no_text(name):
    required = grammar(name, required=True)
    assert takes(required, ONE_CALL[name])
    assert takes(required, TWO_CALLS[name])
    assert not takes(required, "")
    assert not takes(required, "Hello.")
    assert not takes(required, ONE_CALL[name] + " Hello.")
    assert not takes(required, ONE_CALL[name].replace("lamp", "light"))
    assert not takes(required, ONE_CALL[name].replace("den", "attic"))


@each_format
def test_one_call_is_all_that_is_admitted_where_calls_are_not_parallel(name):
    required = grammar(name, required=True, parallel=False)
    assert takes(required, ONE_CALL[name])
    assert not takes(required, TWO_CALLS[name])


@each_format
def test_a_named_tool_is_the_only_one_of_its_list(name):
    required = grammar(name, required=True, parallel=False, tools=TOOLS[1:])
    assert not takes(required, ONE_CALL[name])


@each_format
def test_whatever_required_admits_is_read_as_valid_calls(name):
    rng = np.random.default_rng(5)
    required = grammar(name, required=True)
    num_read = 0
    for _ in range(12):
        text = random_text(required.start(), rng, max_tokens=400, short_after=60)
        if text is None:
            continue
        found = calls_in(name, text)
        assert found.calls, text
        assert not found.content, text
        check_calls(found)
        num_read += 1
    assert num_read >= 6


@each_guided_format
def test_auto_admits_text_and_valid_calls_but_no_invalid_call(name):
    auto = grammar(name, required=False)
    assert takes(auto, "Hello, {world} <b>.")
    assert takes(auto, "")
    assert takes(auto, ONE_CALL[name])
    assert takes(auto, TWO_CALLS[name])
    assert not takes(auto, ONE_CALL[name].replace("den", "attic"))
    assert not takes(auto, ONE_CALL[name].replace("lamp", "light"))


@pytest.mark.parametrize("name", ["hermes", "mistral", "qwen3_coder"])
def test_auto_constrains_calls_behind_text_too(name):
    auto = grammar(name, required=False)
    assert takes(auto, "I will.\n" + ONE_CALL[name])
    assert not takes(auto, "I will.\n" + ONE_CALL[name].replace("den", "attic"))


def test_formats_without_a_begin_marker_cannot_constrain_auto():
    for name in ("pythonic", "json_call"):
        assert TOOL_PARSERS[name].constraint(TOOLS, required=False, parallel=True) is None


def test_the_python_tag_may_stand_before_a_constrained_call():
    auto = grammar("llama3_json", required=False)
    assert takes(auto, "<|python_tag|>" + ONE_CALL["llama3_json"])
    assert takes(auto, '{"city": 1}')


def test_newer_mistral_templates_get_names_and_args():
    call = f"[TOOL_CALLS]lamp[ARGS]{LAMP}"
    required = grammar("mistral", required=True, template=ARGS_TEMPLATE)
    assert takes(required, call)
    assert takes(required, call + "[TOOL_CALLS]now[ARGS]{}")
    assert not takes(required, ONE_CALL["mistral"])
    auto = grammar("mistral", required=False, template=ARGS_TEMPLATE)
    assert takes(auto, "Well. " + call)
    assert not takes(auto, "Well. [TOOL_CALLS]light[ARGS]{}")


def test_the_blank_of_a_mistral_template_is_kept():
    required = grammar("mistral", required=True, template="[TOOL_CALLS] [{{ calls }}]")
    assert takes(required, ONE_CALL["mistral"].replace("]", "] ", 1))


def test_text_parameters_of_qwen_coder_are_free_and_optional_ones_may_be_missing():
    tool = ToolSpec("edit", {"properties": {"path": {"type": "string"}, "line": {"type": "integer"}}})
    required = grammar("qwen3_coder", required=True, tools=[tool])
    path = '<parameter=path>\na "b" <c>\n\n\n</parameter>\n'
    for body in ("", path, path + "<parameter=line>\n12\n</parameter>\n"):
        assert takes(required, f"<tool_call>\n<function=edit>\n{body}</function>\n</tool_call>"), body
    assert not takes(
        required, "<tool_call>\n<function=edit>\n<parameter=line>\nx\n</parameter>\n</function>\n</tool_call>"
    )


def test_names_with_quotes_are_written_as_json():
    required = grammar("hermes", required=True, tools=[ToolSpec('a"b')])
    assert takes(required, hermes(r"a\"b", "{}"))


SIZE = {"$ref": "#/$defs/size"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"p{i}": {} for i in range(5000)}},
        {"properties": {"p": {"enum": [f"v{i}" for i in range(5000)]}}},
        {"properties": {f"p{i}": {"enum": [f"v{j}" for j in range(60)]} for i in range(100)}},
        {"properties": {f"p{i}": SIZE for i in range(500)}, "$defs": {"size": {"type": "integer", "title": "x" * 900}}},
    ],
)
def test_parameters_in_tags_are_refused_before_their_constraint_takes_memory(schema):
    tracemalloc.start()
    try:
        with pytest.raises(ValidationError, match="at most") as caught:
            TOOL_PARSERS["qwen3_coder"].constraint([ToolSpec("f", schema)], required=True, parallel=True)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.parameter == "tools"
