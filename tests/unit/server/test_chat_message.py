import msgspec
import pytest

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Reasoning
from octavo.server.chat_message import delta_of, message_of
from octavo.server.turn_reasoning import ReasoningNames

BOTH = ReasoningNames.of("both")
EVENTS = [
    Reasoning("be"),
    Reasoning("cause"),
    Content("so"),
    CallBegun(0, "f"),
    CallArguments(0, '{"x"'),
    CallArguments(0, ": 1}"),
    CallEnded(0),
    CallBegun(1, "g"),
]


def plain(struct):
    return msgspec.to_builtins(struct)


def test_a_message_holds_what_was_said_thought_and_called():
    message = plain(message_of(EVENTS, "assistant", "", BOTH))
    assert (message["content"], message["reasoning"], message["reasoning_content"]) == ("so", "because", "because")
    assert [call["function"] for call in message["tool_calls"]] == [
        {"name": "f", "arguments": '{"x": 1}'},
        {"name": "g", "arguments": ""},
    ]
    assert len({call["id"] for call in message["tool_calls"]}) == 2


@pytest.mark.parametrize(
    ("events", "content"), [([], ""), ([CallBegun(0, "f")], None), ([Reasoning("x")], None), ([Content("a")], "a")]
)
def test_content_is_null_only_beside_something_else(events, content):
    message = plain(message_of(events, "assistant", "", BOTH))
    assert message["content"] == content
    assert ("tool_calls" in message) == any(isinstance(event, CallBegun) for event in events)


@pytest.mark.parametrize("option", ["both", "reasoning", "reasoning_content"])
def test_reasoning_has_the_names_that_the_operator_wants(option):
    wanted = {"reasoning", "reasoning_content"} if option == "both" else {option}
    names = ReasoningNames.of(option)
    assert {name for name in plain(message_of(EVENTS, "assistant", "", names)) if "reason" in name} == wanted
    assert {name for name in plain(delta_of(EVENTS, names)) if "reason" in name} == wanted


def test_a_delta_names_a_call_once_and_joins_its_pieces():
    first = plain(delta_of(EVENTS[3:5], BOTH))["tool_calls"]
    assert [(call["index"], call["type"], call["function"]) for call in first] == [
        (0, "function", {"name": "f", "arguments": '{"x"'})
    ]
    assert plain(delta_of(EVENTS[5:6], BOTH)) == {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}
    assert plain(delta_of([CallEnded(0)], BOTH)) == {}
