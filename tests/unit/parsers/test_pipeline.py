import pytest

from octavo.base.errors import InvariantError
from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Reasoning
from octavo.parsers.registry import TOOL_PARSERS, make_parser


def test_arguments_are_passed_on_as_they_come():
    parser = make_parser(tool="hermes", reasoning=None)
    assert parser.feed('<tool_call>{"name": "f", "argum') == []
    assert parser.feed('ents": ') == []
    assert parser.feed('{"a": "b') == [CallBegun(0, "f"), CallArguments(0, '{"a": "b')]
    assert parser.feed("c") == [CallArguments(0, "c")]
    assert parser.feed('"}') == [CallArguments(0, '"}'), CallEnded(0)]
    assert parser.feed("}\n</tool_call>") == []
    assert parser.finish() == []


def test_text_is_held_back_only_while_it_may_be_a_marker_or_blanks_before_one():
    parser = make_parser(tool="hermes", reasoning=None)
    assert parser.feed("a < b") == [Content("a < b")]
    assert parser.feed(" <tool") == []
    assert parser.feed("s>") == [Content(" <tools>")]
    assert parser.feed("\n") == []
    assert parser.finish() == [Content("\n")]


def test_reasoning_is_passed_on_as_it_comes_and_tools_are_read_behind_it():
    parser = make_parser(tool="hermes", reasoning="qwen3", starts_in_reasoning=True)
    assert parser.feed("Let me") == [Reasoning("Let me")]
    assert parser.feed(" see.\n</thi") == [Reasoning(" see.")]
    assert parser.feed("nk>\n\nOk.<tool_call>") == [Content("Ok.")]
    assert parser.feed('{"name": "f", "arguments": {}}') == [CallBegun(0, "f"), CallArguments(0, "{}"), CallEnded(0)]


def test_strings_of_qwen_coder_are_passed_on_as_they_come():
    parser = make_parser(tool="qwen3_coder", reasoning=None)
    assert parser.feed("<function=f>") == [CallBegun(0, "f")]
    assert parser.feed("<parameter=code>\nif x") == [CallArguments(0, '{"code": "if x')]
    assert parser.feed(':\n  "y"') == [CallArguments(0, ':\\n  \\"y\\"')]
    assert parser.feed("\n</parameter></function>") == [CallArguments(0, '"}'), CallEnded(0)]


def test_a_pythonic_call_is_passed_on_when_it_is_complete():
    parser = make_parser(tool="pythonic", reasoning=None)
    assert parser.feed("[f(a=1") == []
    assert parser.feed(")") == [CallBegun(0, "f"), CallArguments(0, '{"a": 1}'), CallEnded(0)]


@pytest.mark.parametrize("tool", TOOL_PARSERS)
def test_a_finished_parser_gives_nothing_more_and_takes_nothing(tool):
    parser = make_parser(tool=tool, reasoning=None)
    parser.feed("")
    parser.feed("x")
    parser.finish()
    assert parser.finish() == []
    with pytest.raises(InvariantError, match="after its text had ended"):
        parser.feed("y")
