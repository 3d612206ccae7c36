import pytest

from octavo.server.api.chat_types import ChatFields
from octavo.server.errors import ApiError
from octavo.server.messages import MAX_TOOLS, read_messages, read_tools

USER = {"role": "user", "content": "hi"}


def tool(name):
    return {"type": "function", "function": {"name": name}}


def call(arguments):
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [('{"a": 1}', {"a": 1}), ("not json", "not json"), ("[1]", "[1]"), ("", {}), (None, {}), ({"a": 1}, {"a": 1})],
)
def test_arguments_of_earlier_calls_become_objects_where_they_are(arguments, read):
    messages = read_messages([{"role": "assistant", "content": None, "tool_calls": [call(arguments)]}], 10)
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == read
    assert messages[0]["content"] == ""


def test_what_was_sent_is_not_changed():
    message = {"role": "assistant", "reasoning_content": "x", "content": [{"type": "text", "text": "a"}], "name": None}
    before = repr(message)
    assert read_messages([message], 10) == [{"role": "assistant", "reasoning": "x", "content": "a"}]
    assert repr(message) == before


@pytest.mark.parametrize(
    "message",
    [
        {"content": "hi"},
        {"role": "foo", "content": "hi"},
        {"role": 5, "content": "hi"},
        {"role": "user"},
        {"role": "user", "content": 5},
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "tool_calls": {}},
        {"role": "assistant", "tool_calls": [{}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": 1}}]},
        {"role": "tool", "content": "x"},
    ],
)
def test_a_bad_message_is_named_by_its_place(message):
    with pytest.raises(ApiError) as refused:
        read_messages([USER, message], 10)
    assert refused.value.param == "messages"
    assert "messages[1]" in refused.value.message


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [tool("a"), tool("a")],
        [tool("a b")],
        [tool("x" * 65)],
        [{"type": "web_search"}],
        [tool(f"t{i}") for i in range(MAX_TOOLS + 1)],
    ],
)
def test_bad_definitions_of_tools_are_refused(tools):
    with pytest.raises(ApiError) as refused:
        read_tools(ChatFields(messages=[USER], tools=tools, tool_choice="none"), excludes_unused=False)
    assert refused.value.param == "tools"


def test_tools_are_shown_with_choice_none_unless_excluded():
    request = ChatFields(messages=[USER], tools=[tool("a")], tool_choice="none")
    assert read_tools(request, excludes_unused=False) == [tool("a")]
    assert read_tools(request, excludes_unused=True) is None


def test_a_choice_without_tools_asks_for_nothing_only_if_it_is_none_or_auto():
    for choice in (None, "none", "auto"):
        assert read_tools(ChatFields(messages=[USER], tool_choice=choice), excludes_unused=False) is None
    with pytest.raises(ApiError):
        read_tools(ChatFields(messages=[USER], tool_choice="required"), excludes_unused=False)
