from importlib.metadata import EntryPoint, EntryPoints

import pytest
from fakes.tool_outputs import replay

from octavo.base.errors import ConfigError
from octavo.parsers import registry
from octavo.parsers.events import FoldedCall
from octavo.parsers.hermes import HermesFormat
from octavo.parsers.registry import (
    find_reasoning_parser,
    find_tool_parser,
    make_parser,
    mismatch,
    reasoning_format,
    tool_format,
)

# The markers that decide, in the way that the models' own templates carry them.
QWEN25 = r"""{%- if tools %}{{- "<tools>" }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
{{- "</tools>\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>" }}{%- endif %}
{%- for call in message.tool_calls %}{{- '\n<tool_call>\n{"name": "' }}{{- call.name }}{{- '", "arguments": ' }}
{{- call.arguments | tojson }}{{- '}\n</tool_call>' }}{%- endfor %}{{- '<|im_start|>assistant\n' }}"""
QWEN3 = (
    QWEN25
    + r"""{%- if '</think>' in content %}{{- '<think>\n' + reasoning + '\n</think>\n\n' }}{%- endif %}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}"""
)
QWEN3_CODER = r"""{{- '<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1' }}
{{- '\n</parameter>\n</function>\n</tool_call>' }}{{- '<parameter=' + name + '>\n' }}{{ x|items }}"""
LLAMA31 = r"""{{- 'Respond in the format {"name": function name, "parameters": dictionary of argument name}.' }}
{{- "<|python_tag|>" + tool_call.name + ".call(" }}{{- '{"name": "' + tool_call.name + '", "parameters": ' }}"""
LLAMA32 = r"""{{- "Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name}. " }}"""
LLAMA32_PYTHONIC = r"""{{- 'Respond in the format [func_name1(params_name1=params_value1), func_name2(params)] ' }}"""
MISTRAL_V3 = (
    r"""{{- "[AVAILABLE_TOOLS] [" }}{{- "[TOOL_CALLS] [" }}{%- set out = tool_call.function|tojson %}{{- "]" }}"""
)
MISTRAL_NEMO = MISTRAL_V3.replace("[TOOL_CALLS] [", "[TOOL_CALLS][")
MISTRAL_SMALL = r"""{{- '[TOOL_CALLS]' + name + '[CALL_ID]' + id }}{{- '[ARGS]' + arguments|tojson }}"""
HERMES3 = r"""{{ '<tool_call>\n{"name": <function-name>, "arguments": <args-dict>}\n</tool_call>' }}"""
DEEPSEEK_R1 = r"""{%- set content = content.split('</think>')[-1] -%}{{'<｜tool▁call▁begin｜>' + tool['type'] }}
{%- if add_generation_prompt -%}{{'<｜Assistant｜><think>\n'}}{%- endif %}"""
DEEPSEEK_R1_FIRST = DEEPSEEK_R1.replace(r"<think>\n", "")
GLM45 = r"""{{- '<tool_call>{function-name}\n<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value></tool_call>' }}"""
SMOLLM2 = (
    r"""{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] }}{% endfor %}"""
)
GEMMA = r"""{{ '<start_of_turn>' + role + '\n' + (message['content'] | trim) + '<end_of_turn>\n' }}"""


@pytest.mark.parametrize(
    ("template", "tool", "reasoning"),
    [
        (QWEN25, "hermes", None),
        (QWEN3, "hermes", "qwen3"),
        (QWEN3_CODER, "qwen3_coder", None),
        (LLAMA31, "llama3_json", None),
        (LLAMA32, "llama3_json", None),
        (LLAMA32_PYTHONIC, "pythonic", None),
        (MISTRAL_V3, "mistral", None),
        (MISTRAL_NEMO, "mistral", None),
        (MISTRAL_SMALL, "mistral", None),
        (HERMES3, "hermes", None),
        (DEEPSEEK_R1, None, "deepseek_r1"),
        (DEEPSEEK_R1_FIRST, None, "deepseek_r1"),
        (GLM45, None, None),
        (SMOLLM2, None, None),
        (GEMMA, None, None),
        ("", None, None),
    ],
)
def test_formats_are_found_by_what_templates_contain(template, tool, reasoning):
    assert find_tool_parser(template) == tool
    assert find_reasoning_parser(template) == reasoning


def test_a_parser_that_fits_the_template_gives_no_warning():
    assert mismatch("hermes", QWEN25) is None


def test_a_parser_of_another_template_is_a_warning_that_names_the_right_one():
    warning = mismatch("llama3_json", QWEN25)
    assert warning is not None
    assert "'llama3_json'" in warning
    assert "'hermes'" in warning


def test_a_template_without_tools_is_a_warning():
    assert "no known format" in (mismatch("hermes", SMOLLM2) or "")


@pytest.mark.parametrize(
    ("name", "prompt", "starts"),
    [
        ("qwen3", "<|im_start|>assistant\n", False),
        ("qwen3", "<|im_start|>assistant\n<think>\n", True),
        ("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("qwen3", "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n", False),
        ("deepseek_r1", "<｜Assistant｜>", True),
        ("deepseek_r1", "<｜Assistant｜><think>\n", True),
        ("deepseek_r1", "<｜Assistant｜></think>", False),
        ("deepseek_r1", "", True),
    ],
)
def test_the_end_of_a_prompt_says_whether_an_answer_starts_in_reasoning(name, prompt, starts):
    assert reasoning_format(name).starts_in_reasoning(prompt) is starts


def test_without_parsers_everything_is_content():
    parser = make_parser(tool=None, reasoning=None)
    assert replay(parser, ["<think>a</think>", "", '<tool_call>{"name": "f"}']).content == (
        '<think>a</think><tool_call>{"name": "f"}'
    )


def test_only_the_first_call_is_kept_where_calls_are_not_parallel():
    text = (
        'a<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {}}</tool_call>b'
    )
    found = replay(make_parser(tool="hermes", reasoning=None, parallel=False), text)
    assert found.calls == (FoldedCall("f", "{}", is_complete=True),)
    assert found.content == "ab"


class ShoutFormat(HermesFormat):
    name = "shout"


def test_formats_of_other_packages_come_by_entry_points(monkeypatch):
    point = EntryPoint("shout", f"{__name__}:SHOUT", registry.TOOL_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: ShoutFormat())
    monkeypatch.setattr(registry, "entry_points", lambda group: EntryPoints([point]).select(group=group))
    assert tool_format("shout").name == "shout"
    assert replay(make_parser(tool="shout", reasoning=None), ['<tool_call>{"name": "f"}']).calls[0].name == "f"
    with pytest.raises(ConfigError, match=r"mistral.*shout"):
        tool_format("whisper")


@pytest.mark.parametrize(
    ("load", "option"), [(tool_format, "tool_call_parser"), (reasoning_format, "reasoning_parser")]
)
def test_a_name_that_is_not_known_is_an_error_that_lists_those_that_are(load, option):
    with pytest.raises(ConfigError, match="is not known; there are") as refused:
        load("hermse")
    assert refused.value.problems[0].option == option
