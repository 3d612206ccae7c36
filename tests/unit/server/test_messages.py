import pytest

from octavo.server.errors import ApiError
from octavo.server.messages import read_messages

USER = {"role": "user", "content": "hi"}


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
    message = {"role": "assistant", "content": [{"type": "text", "text": "a"}], "name": None}
    before = repr(message)
    assert read_messages([message], 10) == [{"role": "assistant", "content": "a"}]
    assert repr(message) == before


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_of_earlier_turns_has_both_names_whichever_it_came_with(name):
    (message,) = read_messages([{"role": "assistant", name: "x", "content": None}], 10)
    assert message == {"role": "assistant", "reasoning": "x", "reasoning_content": "x", "content": ""}


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
        {"role": "assistant", "content": "a", "reasoning": ["x"]},
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
    ("opening", "closing"), [('{"a":', "}"), ('{"a":[', "]}")], ids=["objects", "objects and lists"]
)
def test_arguments_deeper_than_a_template_can_read_stay_text(opening, closing):
    def read(num_levels):
        text = opening * num_levels + "1" + closing * num_levels
        messages = read_messages([{"role": "assistant", "content": None, "tool_calls": [call(text)]}], 10)
        return messages[0]["tool_calls"][0]["function"]["arguments"], text

    assert isinstance(read(30)[0], dict)
    for num_levels in (64, 400, 900, 30_000):
        arguments, text = read(num_levels)
        assert arguments == text
