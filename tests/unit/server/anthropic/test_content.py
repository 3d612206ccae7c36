import pytest

from octavo.server.anthropic.content import read_content
from octavo.server.errors import ApiError

USER = {"role": "user", "content": "hi"}
CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}}
CALLED = {"role": "assistant", "content": [CALL]}


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


def result(content, call_id="t1", **fields):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def read(*messages, system=None):
    return read_content(messages, system).messages


@pytest.mark.parametrize(
    ("system", "content"),
    [
        ("be good", "be good"),
        ([text("be good", cache_control={"type": "ephemeral"}), text("be brief")], "be good\nbe brief"),
        ("", None),
        ([], None),
        (None, None),
    ],
)
def test_the_system_prompt_is_the_first_message(system, content):
    first = [] if content is None else [{"role": "system", "content": content}]
    assert read(USER, system=system) == [*first, {"role": "user", "content": "hi"}]


def test_blocks_of_text_are_joined_by_newlines():
    blocks = [text("a", cache_control={"type": "ephemeral"}), text("b", citations=None)]
    assert read({"role": "user", "content": blocks}) == [{"role": "user", "content": "a\nb"}]


def test_messages_of_one_role_in_a_row_are_one():
    answer = {"role": "assistant", "content": "x"}
    assert read(USER, USER, answer, answer, USER) == [
        {"role": "user", "content": "hi\nhi"},
        {"role": "assistant", "content": "x\nx"},
        {"role": "user", "content": "hi"},
    ]


def test_a_system_message_between_others_keeps_its_place():
    assert [message["role"] for message in read(USER, {"role": "system", "content": "s"}, USER)] == [
        "user", "system", "user"]  # fmt: skip


def test_a_system_message_at_the_start_joins_the_system_prompt():
    assert read({"role": "system", "content": "b"}, USER, system="a")[0] == {"role": "system", "content": "a\nb"}


def test_calls_and_their_results_become_messages_in_their_order():
    blocks = [text("so"), CALL, {**CALL, "id": "t2", "name": "g"}]
    results = [result("1"), result([text("2"), text("3")], "t2"), text("go on")]
    assert read(USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "so",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
                {"id": "t2", "type": "function", "function": {"name": "g", "arguments": {"x": 1}}},
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "name": "f", "content": "1"},
        {"role": "tool", "tool_call_id": "t2", "name": "g", "content": "2\n3"},
        {"role": "user", "content": "go on"},
    ]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (result("no such file", is_error=True), "Error: no such file"),
        (result("fine", is_error=False), "fine"),
        ({"type": "tool_result", "tool_use_id": "t1"}, ""),
        (result([]), ""),
    ],
)
def test_a_result_says_whether_it_is_an_error(block, content):
    assert read(USER, CALLED, {"role": "user", "content": [block]})[-1]["content"] == content


def test_what_was_thought_goes_to_the_template_and_what_was_encrypted_does_not():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    message = {"role": "assistant", "content": [thought, hidden, text("so")]}
    assert read(USER, message, USER)[1] == {"role": "assistant", "content": "so", "reasoning": "hm"}
    assert read(USER, {"role": "assistant", "content": [hidden]}, USER)[1] == {"role": "assistant", "content": ""}


def test_an_answer_at_the_end_is_gone_on_with():
    chat = read_content([USER, {"role": "assistant", "content": "The answer is"}], None)
    assert chat.is_continued
    assert chat.messages[-1] == {"role": "assistant", "content": "The answer is"}
    assert not read_content([USER], None).is_continued


@pytest.mark.parametrize("content", ["", []])
def test_an_empty_answer_at_the_end_is_none(content):
    chat = read_content([USER, {"role": "assistant", "content": content}], None)
    assert (chat.is_continued, len(chat.messages)) == (False, 1)


@pytest.mark.parametrize(
    ("messages", "begins"),
    [
        ([], "messages: is empty"),
        ([{"role": "tool", "content": "x"}], "messages[0].role='tool'"),
        ([{"content": "x"}], "messages[0].role=None"),
        ([{"role": "user", "content": ""}], "messages[0].content: is empty"),
        ([{"role": "user", "content": []}], "messages[0].content: is empty"),
        ([USER, {"role": "assistant", "content": ""}, USER], "messages[1].content: is empty"),
        ([{"role": "user"}], "messages[0].content=None: must be"),
        ([{"role": "user", "content": 5}], "messages[0].content=5: must be"),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0]='x': must be a block"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text=None: must be a text"),
        ([{"role": "user", "content": [text("a"), {"type": "image"}]}], "messages[0].content[1].type='image': this"),
        ([{"role": "user", "content": [{"type": "document"}]}], "messages[0].content[0].type='document': this"),
        ([{"role": "user", "content": [CALL]}], "messages[0].content[0].type='tool_use': this"),
        ([USER, {"role": "user", "content": [result("x")]}], "messages[1].content[0].tool_use_id='t1': no message"),
        ([USER, CALLED, {"role": "user", "content": [result("x", "t2")]}], "messages[2].content[0].tool_use_id='t2'"),
        (
            [USER, CALLED, {"role": "user", "content": [result([{"type": "image"}])]}],
            "messages[2].content[0].content[0]",
        ),
        ([USER, CALLED, {"role": "user", "content": [result("x", is_error="no")]}], "messages[2].content[0].is_error"),
        ([USER, CALLED], "messages: the last one holds a tool_use"),
        ([USER, {"role": "assistant", "content": [{**CALL, "input": "{}"}]}, USER], "messages[1].content[0].input"),
        ([USER, {"role": "assistant", "content": [{**CALL, "id": 1}]}, USER], "messages[1].content[0].id=1"),
        ([USER, {"role": "assistant", "content": [{"type": "thinking"}]}, USER], "messages[1].content[0].thinking"),
        ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}], "messages: an answer that"),
        ([USER, {"role": "assistant", "content": [{"type": "server_tool_use"}]}, USER], "messages[1].content[0].type"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(messages, begins):
    with pytest.raises(ApiError) as refused:
        read_content(messages, None)
    assert refused.value.message.startswith(begins)
    assert (refused.value.status, refused.value.param) == (400, "messages")


def test_a_wrong_system_prompt_is_named():
    with pytest.raises(ApiError) as refused:
        read_content([USER], [text("a"), {"type": "image"}])
    assert refused.value.message.startswith("system[1].type='image'")
