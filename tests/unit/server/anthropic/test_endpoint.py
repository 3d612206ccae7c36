"""Answers, whole and streamed, over a fake engine that says a given text, cut anywhere."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from fakes.message_events import add_up, kinds, read_events, without_ids
from fakes.spoken_turns import TEXT, FakeEngine, make_turn

from octavo.server.anthropic.endpoint import answer_message
from octavo.server.anthropic.route import adopt
from octavo.server.exchange import Exchange

CONFIG = SimpleNamespace(stream_interval=1, sse_keep_alive_interval=0, enable_force_include_usage=False)
CALL = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
AGAIN = TEXT + " So." + CALL % '{"x": [1]}'
CUT = TEXT[: TEXT.index("b")]
TEXTS = [
    TEXT,
    AGAIN,
    CUT,
    TEXT[:12],
    "Plain.",
    "",
    CALL % "{nonsense: 1}",
    CALL % '[{"x": 1}]',
    CALL % '{"x": 1, y: 2}',
]


class Sent:
    """What a client received."""

    def __init__(self):
        self.status = None
        self.headers = {}
        self.body = b""

    async def __call__(self, message):
        self.status = message.get("status", self.status)
        self.headers |= dict(message.get("headers", ()))
        self.body += message.get("body", b"")


def run(engine, turn):
    sent = Sent()
    exchange = Exchange({"method": "POST", "headers": []}, None, sent, "/v1/messages")
    adopt(exchange)
    asyncio.run(answer_message(exchange, SimpleNamespace(engine=engine, config=CONFIG), turn))
    assert sent.headers[b"request-id"].decode() == exchange.request_id
    assert (sent.status, engine.num_left) == (200, 1)
    return sent, exchange


def whole(text, *, reason="stop", **turn):
    sent, _ = run(FakeEngine([text], 1000, reason), make_turn(**turn))
    return json.loads(sent.body)


def streamed(text, *, reason="stop", size=1, interval=1, **turn):
    sent, _ = run(FakeEngine([text], size, reason), make_turn(stream=True, stream_interval=interval, **turn))
    return read_events(sent.body)


def blocks(message):
    return [{name: block[name] for name in block if name not in ("id", "signature")} for block in message["content"]]


@pytest.mark.parametrize(("size", "interval"), [(1, 1), (2, 1), (3, 5), (11, 1), (1000, 1)])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_streamed_is_as_not_streamed(text, size, interval, reason):
    expected = without_ids(whole(text, reason=reason))
    events = streamed(text, reason=reason, size=size, interval=interval)
    assert without_ids(add_up(events)) == expected


def test_an_answer_is_blocks_in_the_order_in_which_they_were_said():
    message = whole(AGAIN)
    assert blocks(message) == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Well."},
        {"type": "tool_use", "name": "f", "input": {"x": 'a"b'}},
        {"type": "tool_use", "name": "g", "input": {}},
        {"type": "text", "text": " So."},
        {"type": "tool_use", "name": "f", "input": {"x": [1]}},
    ]
    assert (message["id"], message["type"], message["role"], message["model"]) == ("msg_r", "message", "assistant", "m")
    assert (message["stop_reason"], message["stop_sequence"]) == ("tool_use", None)
    assert message["usage"] == {
        "input_tokens": 1,
        "output_tokens": len(AGAIN),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens_details": {"thinking_tokens": 3},
    }


def test_the_order_of_events():
    assert kinds(streamed(TEXT)) == [
        "message_start",
        *("start thinking", "delta thinking_delta", "delta signature_delta", "stop"),
        *("start text", "delta text_delta", "stop"),
        *("start tool_use", "delta input_json_delta", "stop"),
        *("start tool_use", "delta input_json_delta", "stop"),
        "message_delta",
        "message_stop",
    ]


def test_a_ping_follows_the_start():
    sent, _ = run(FakeEngine(["x"], 1), make_turn(stream=True))
    second = sent.body.split(b"\n\n")[1]
    assert second == b'event: ping\ndata: {"type":"ping"}'


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_comes_as_it_is_said_and_deltas_of_one_update_are_one(size):
    events = streamed("Plaintext.", size=size)
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(deltas) == -(-10 // size)
    assert "".join(deltas) == "Plaintext."


def test_an_answer_without_text_has_no_blocks():
    message = whole("")
    assert (message["content"], message["stop_reason"]) == ([], "end_turn")
    assert kinds(streamed("")) == ["message_start", "message_delta", "message_stop"]


def test_thoughts_have_a_signature_that_depends_on_them():
    first, again, other = (whole(f"<think>{thought}</think>x")["content"][0] for thought in ("a", "a", "b"))
    assert first["signature"] == again["signature"] != other["signature"]


@pytest.mark.parametrize(
    ("text", "input_"),
    [
        (CALL % '{"x": "a", "y": 2}', {"x": "a", "y": 2}),
        (CALL % '{"x": "a", y: 2}', {"x": "a"}),
        (CALL % '[{"x": 1}]', {}),
        (CALL % '"{}"', {}),
    ],
)
def test_arguments_are_an_object_as_far_as_they_are_one(text, input_):
    assert blocks(whole(text)) == [{"type": "tool_use", "name": "f", "input": input_}]
    assert whole(text)["stop_reason"] == "tool_use"


def test_a_call_that_was_cut_keeps_what_is_whole_of_it():
    text = '<tool_call>\n{"name": "f", "arguments": {"x": "a", "n": [1, 23, "b'
    message = whole(text, reason="length", max_tokens=len(text))
    assert blocks(message) == [{"type": "tool_use", "name": "f", "input": {"x": "a", "n": [1, 23]}}]
    assert message["stop_reason"] == "max_tokens"
    deltas = [event.get("delta", {}).get("partial_json", "") for event in streamed(text, reason="length")]
    assert "".join(deltas) == '{"x": "a", "n": [1, 23, "b'


@pytest.mark.parametrize(
    ("text", "reason", "turn", "stop_reason"),
    [
        ("x", "stop", {}, "end_turn"),
        (TEXT, "stop", {"choice": "auto"}, "tool_use"),
        (TEXT, "stop", {"choice": "required"}, "tool_use"),
        (TEXT, "stop", {"choice": "named"}, "tool_use"),
        ("xyz", "length", {"max_tokens": 3}, "max_tokens"),
        ("xyz", "length", {"max_tokens": 4}, "model_context_window_exceeded"),
        ("xyz", "length", {}, "max_tokens"),
        ("xyz", "repetition", {}, "end_turn"),
    ],
)
def test_why_it_ended(text, reason, turn, stop_reason):
    assert whole(text, reason=reason, **turn)["stop_reason"] == stop_reason
    assert add_up(streamed(text, reason=reason, **turn))["stop_reason"] == stop_reason


@pytest.mark.parametrize(
    ("stop", "found", "reason", "sequence"),
    [
        (["END", "x"], "END", "stop_sequence", "END"),
        ("END", "END", "stop_sequence", "END"),
        (["x"], 7, "end_turn", None),
        (None, None, "end_turn", None),
    ],
)
def test_a_stop_sequence_is_named(stop, found, reason, sequence):
    engine = FakeEngine(["Plain"], 1000)
    engine.stop_reason = found
    sent, _ = run(engine, make_turn(stop=stop))
    message = json.loads(sent.body)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


def test_reasoning_that_is_not_wanted_is_left_out_but_counted():
    message = whole(TEXT, include_reasoning=False)
    assert blocks(message)[0] == {"type": "text", "text": "Well."}
    assert message["usage"]["output_tokens_details"] == {"thinking_tokens": 3}


def test_a_failure_on_the_way_is_the_last_event():
    sent, exchange = run(FakeEngine(["Plain."], 1, reason="error"), make_turn(stream=True, is_plain=True))
    events = read_events(sent.body)
    assert kinds(events) == ["message_start", "start text", "delta text_delta", "error"]
    assert (events[-1]["error"]["type"], events[-1]["request_id"]) == ("api_error", exchange.request_id)
    assert exchange.notes["finish_reason"] == "error"
