import json
import time
import tracemalloc

import pytest
from fakes.tool_outputs import random_pieces, replay
from hypothesis import given
from hypothesis import strategies as st

from octavo.parsers.cursor import MAX_HELD_CHARS
from octavo.parsers.events import CallArguments, Content
from octavo.parsers.interface import ToolSpec
from octavo.parsers.registry import TOOL_PARSERS, make_parser
from octavo.parsers.writer import MAX_BLANK_CHARS

TOOLS = [
    ToolSpec("f", {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": ["array", "null"]}}})
]
FRAGMENTS = [
    "<tool_call>", "</tool_call>", "<tool", "_call>", "<function=f>", "</function>", "<parameter=n>", "<parameter=s>",
    "<parameter=l>", "</parameter>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", "<|python_start|>",
    "<think>", "</think>",
    '{"name": "f", "arguments": ', '{"name": "f", "parameters": ', '"name"', '"arguments"', ": ", "{", "}", "[", "]",
    "(", ")",
    '"', "'", "\\", ",", ";", "=", "\n", " ", "f", "1", "null", "a=1", "f(", "[f(s='", "text", "é😀", "\x00", "\t\r\n",
]  # fmt: skip
each_format = pytest.mark.parametrize("tool", TOOL_PARSERS)
hostile_texts = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


def parser_of(tool, reasoning="qwen3"):
    return make_parser(tool=tool, reasoning=reasoning, tools=TOOLS)


@each_format
@given(text=hostile_texts, seed=st.integers(0, 2**32))
def test_any_split_of_any_text_gives_the_same(tool, text, seed):
    whole = replay(parser_of(tool), [text])
    assert replay(parser_of(tool), text) == whole
    assert replay(parser_of(tool), random_pieces(text, seed, longest=20)) == whole


@each_format
@given(text=hostile_texts)
def test_a_text_without_calls_is_content_to_the_last_character(tool, text):
    found = replay(parser_of(tool, reasoning=None), [text])
    if not found.calls:
        assert found.content == text


@each_format
@given(text=hostile_texts)
def test_content_and_verbatim_arguments_stand_in_the_text_in_their_order(tool, text):
    found = replay(parser_of(tool, reasoning=None), [text])
    characters = iter(text)
    assert all(char in characters for char in found.content)
    if tool not in ("pythonic", "qwen3_coder"):
        for call in found.calls:
            assert call.arguments in text or call.arguments == "{}"


@each_format
@given(text=hostile_texts)
def test_one_call_at_most_where_calls_are_not_parallel(tool, text):
    every = replay(make_parser(tool=tool, reasoning=None, tools=TOOLS), [text])
    first = replay(make_parser(tool=tool, reasoning=None, tools=TOOLS, parallel=False), [text])
    assert first.calls == every.calls[:1]
    assert first.content == every.content


HEADS = {
    "tags": "<tool_call>",
    "half a tag": "<tool_call",
    "brackets": '<tool_call>{"name":"f","x":[',
    "objects in lines": '\n{"name"',
    "arguments that nest": '{"name":"f","arguments":{"a":[',
    "escapes": '<tool_call>{"name":"\\"',
    "blanks": " \n",
    "markers": "<|python_tag|>x",
    "lists": "[TOOL_CALLS][",
    "functions": "<tool_call><function=f><parameter=n>\n",
    "calls": "\n[f(a='",
}


def seconds_for(tool, text):
    started = time.process_time()
    whole = replay(parser_of(tool), [text])
    in_pieces = replay(parser_of(tool), (text[at : at + 50] for at in range(0, len(text), 50)))
    assert whole == in_pieces
    return time.process_time() - started


@pytest.mark.parametrize("head", HEADS)
@each_format
def test_hostile_text_takes_linear_time(tool, head):
    seconds_for(tool, HEADS[head] * 10)
    # Eight times the text: quadratic work would take 64 times as long.
    assert seconds_for(tool, (HEADS[head] * 64000)[:64000]) < 24 * seconds_for(tool, (HEADS[head] * 8000)[:8000]) + 0.3


@each_format
def test_a_megabyte_of_hostile_text_in_small_pieces_takes_seconds(tool):
    block = "".join(head * 20 for head in HEADS.values())
    assert seconds_for(tool, block * ((1 << 20) // len(block) + 1)) < 30


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("hermes", '<tool_call>{"x": "'),
        ("hermes", '<tool_call>{"arguments": ['),
        ("llama3_json", '{"parameters": {"a'),
        ("pythonic", "[f(a='"),
        ("qwen3_coder", "<function=f><parameter=n>1"),
        ("mistral", '[TOOL_CALLS] [{"id": "'),
    ],
)
def test_no_more_than_the_limit_is_held_back(tool, text):
    parser, num_fed, num_seen = parser_of(tool, reasoning=None), 0, 0
    for piece in [text, *["x" * 4096] * 40]:
        num_fed += len(piece)
        num_seen += sum(len(event.text) for event in parser.feed(piece) if isinstance(event, Content | CallArguments))
        assert num_fed - num_seen <= MAX_HELD_CHARS + 64
    assert num_seen > 32 * 4096


@each_format
def test_memory_does_not_grow_with_the_text(tool):
    parser = parser_of(tool)
    for event in parser.feed('<tool_call>{"name":"f","arguments":{"a":['):
        assert event
    tracemalloc.start()
    for _ in range(300):
        parser.feed('[{"x": "<tool_call>' * 20 + '"\n')
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 4 * MAX_HELD_CHARS


@each_format
def test_s78_nothing_that_a_model_writes_is_evaluated(tool, tmp_path):
    """CVE-2025-9141: arguments that are expressions make no call, run nothing, and take no time."""
    marker = tmp_path / "marker"
    expressions = [
        f"""__import__("os").system("touch {marker}")""", f"""open("{marker}", "w")""", "10**10**10", '"x"*10**10',
        "[0]*10**9", "(lambda: 1)()", "f'{1}'", "x if 1 else y", "[i for i in (1,)]", "-(-1)", "a.b", "1 + 1",
    ]  # fmt: skip
    started = time.process_time()
    for expression in expressions:
        for text in (f"[f(a={expression})]", f"<|python_start|>[f(n={expression})]<|python_end|>"):
            found = replay(parser_of(tool, reasoning=None), [text])
            assert (found.calls, found.content) == ((), text)
        text = f"<tool_call><function=f><parameter=n>{expression}</parameter></function></tool_call>"
        for call in replay(parser_of(tool, reasoning=None), [text]).calls:
            assert json.loads(call.arguments) == {"n": expression}
    assert time.process_time() - started < 10
    assert not marker.exists()


def test_a_run_of_blanks_is_dropped_at_a_call_up_to_the_limit():
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    for num_blanks, kept in [(MAX_BLANK_CHARS, 0), (MAX_BLANK_CHARS + 1, MAX_BLANK_CHARS + 1)]:
        text = "a" + " " * num_blanks + call
        for pieces in ([text], list(text), random_pieces(text, 1)):
            assert replay(parser_of("hermes"), pieces).content == "a" + " " * kept


def test_a_value_longer_than_may_be_held_is_a_string_whatever_the_pieces():
    value = "[" + "1, " * (MAX_HELD_CHARS // 3) + "1]"
    text = f"<function=f><parameter=l>\n{value}\n</parameter></function>"
    expected = '{"l": "' + value + '"}'
    for pieces in ([text], random_pieces(text, 3, longest=999), random_pieces(text, 4, longest=7)):
        (call,) = replay(parser_of("qwen3_coder"), pieces).calls
        assert call.arguments == expected
