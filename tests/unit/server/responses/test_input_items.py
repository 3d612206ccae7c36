import pytest

from octavo.server.errors import ApiError
from octavo.server.messages import read_messages
from octavo.server.responses.input_items import read_input

USER = {"role": "user", "content": "hi"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "well", "logprobs": []}]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}


def call(name="f", call_id="c1", **fields):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"} | fields


def result(call_id="c1", output="21"):
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def as_call(name="f", call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_a_text_is_a_users_message_behind_the_instructions():
    assert read_input("hi", None, 10) == [USER]
    assert read_input("hi", "be kind", 10) == [{"role": "system", "content": "be kind"}, USER]


def test_parts_of_a_message_are_joined():
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert read_input([{"type": "message", "role": "user", "content": parts}], None, 10) == [
        {"role": "user", "content": "a\nb"}
    ]


def test_instructions_of_all_kinds_that_follow_each_other_are_one_message():
    items = [{"role": "developer", "content": "b"}, {"role": "system", "content": "c"}, USER]
    assert read_input(items, "a", 10) == [{"role": "system", "content": "a\n\nb\n\nc"}, USER]
    assert [message["role"] for message in read_input([*items, *items], None, 10)] == ["system", "user"] * 2


def test_one_turn_of_the_model_is_one_message():
    items = [
        USER,
        THOUGHT,
        SAID,
        call(),
        call("g", "c2"),
        result(),
        result("c2", [{"type": "input_text", "text": "x"}]),
    ]
    assert read_input(items, None, 10) == [
        USER,
        {
            "role": "assistant",
            "reasoning": "hm",
            "content": "well",
            "tool_calls": [as_call(), as_call("g", "c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "21"},
        {"role": "tool", "tool_call_id": "c2", "name": "g", "content": "x"},
    ]


@pytest.mark.parametrize(
    ("items", "num_messages"),
    [
        ([SAID, SAID], 2),
        ([call(), SAID], 2),
        ([SAID, THOUGHT], 2),
        ([call(), result(), call(), result()], 4),
        ([THOUGHT, call(), THOUGHT, call()], 2),
        ([THOUGHT, SAID, USER, THOUGHT, SAID], 3),
    ],
)
def test_what_comes_again_begins_another_message(items, num_messages):
    messages = read_input(items, None, 10)
    assert len(messages) == num_messages
    assert len(read_messages(messages, 10)) == num_messages


def test_a_summary_stands_for_reasoning_that_is_not_there_and_what_is_encrypted_is_nothing():
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}], "content": None}
    assert read_input([summary, SAID], None, 10)[0]["reasoning"] == "short"
    assert read_input([{"type": "reasoning", "summary": [], "encrypted_content": "x"}, USER], None, 10) == [USER]


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"role": "tool", "content": "x"}, "input[0].role="),
        ({"role": ["user"], "content": "x"}, "input[0].role="),
        ({"role": "user"}, "input[0].content="),
        ({"role": "user", "content": [{"type": "input_image"}]}, "input[0].content[0].type="),
        ({"role": "user", "content": ["x"]}, "input[0].content[0].type="),
        ({"role": "user", "content": [{"type": []}]}, "input[0].content[0].type="),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[0].content[0].text="),
        ({"type": "web_search_call"}, "input[0].type='web_search_call'"),
        ({"type": ["message"], "role": "user"}, "input[0].type="),
        ({"id": "msg_1"}, "input[0]: refers to"),
        ({"type": "item_reference", "id": "msg_1"}, "input[0]: refers to"),
        (call(arguments={}), "input[0].arguments="),
        (call(name=None), "input[0].name="),
        (call(call_id=1), "input[0].call_id="),
        (result(call_id=None), "input[0].call_id="),
        (result(output=None), "input[0].output="),
        ({"type": "reasoning", "summary": "x"}, "input[0].summary="),
        ({"type": "reasoning", "content": [{"type": "text"}]}, "input[0].content="),
        ({"type": "reasoning", "content": [{"type": "reasoning_text"}]}, "input[0].content[0].text="),
    ],
)
def test_what_is_wrong_is_named_by_its_place(item, place):
    with pytest.raises(ApiError) as refused:
        read_input([item], None, 10)
    assert refused.value.message.startswith(place)
    assert (refused.value.status, refused.value.param) == (400, "input")


def test_the_number_of_items_is_bounded():
    assert len(read_input([USER] * 3, None, 3)) == 3
    for items in ([], [USER] * 4):
        with pytest.raises(ApiError) as refused:
            read_input(items, None, 3)
        assert refused.value.param == "input"
