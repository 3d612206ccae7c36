"""Answers, whole and streamed, over a fake engine that says a given text, cut anywhere."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest
from fakes.response_events import BEGIN, final_response, read_events, without_random
from fakes.spoken_turns import TEXT, FakeEngine, make_turn

from octavo.server.errors import ApiError
from octavo.server.exchange import Exchange
from octavo.server.responses.endpoint import answer_whole, methods_of_stored
from octavo.server.responses.request import ResponsesRequest
from octavo.server.responses.stream import stream_response

AGAIN = TEXT + ' So.<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
CUT = TEXT[: TEXT.index("b")]
CONFIG = SimpleNamespace(stream_interval=1, sse_keep_alive_interval=0, enable_force_include_usage=False)
TEXTS = [TEXT, AGAIN, CUT, TEXT[:12], "Plain.", "", "<tool_call>\n{nonsense}\n</tool_call>"]


class Sent:
    """What a client received."""

    def __init__(self):
        self.status = None
        self.body = b""

    async def __call__(self, message):
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def run(answer, engine):
    sent = Sent()
    exchange = Exchange({"method": "POST", "headers": []}, None, sent, "/v1/responses")
    service = SimpleNamespace(engine=engine, config=CONFIG, now_s=lambda: 9)
    return asyncio.run(answer(exchange, service)), sent


def whole(text, *, reason="stop", turn=None, size=1000, **fields):
    request, engine = ResponsesRequest(input="x", **fields), FakeEngine([text], size, reason)
    answer, _ = run(lambda *place: answer_whole(*place, request, make_turn(**(turn or {}))), engine)
    assert engine.num_left == 1
    return msgspec.to_builtins(answer)


def streamed(text, *, reason="stop", turn=None, size=1, interval=1, **fields):
    request, engine = ResponsesRequest(input="x", stream=True, **fields), FakeEngine([text], size, reason)
    made = make_turn(stream=True, stream_interval=interval, **(turn or {}))
    _, sent = run(lambda *place: stream_response(*place, request, made), engine)
    assert (sent.status, engine.num_left) == (200, 1)
    return read_events(sent.body)


def kinds(response):
    return [(item["type"], item["status"]) for item in response["output"]]


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize(("size", "interval"), [(1, 1), (1, 7), (3, 1), (1000, 1)])
@pytest.mark.parametrize("text", TEXTS)
def test_streamed_is_as_not_streamed(text, size, interval, reason):
    final = final_response(streamed(text, size=size, interval=interval, reason=reason))
    assert without_random(final) == without_random(whole(text, reason=reason))


def test_reasoning_text_and_calls_are_items_in_their_order():
    response = whole(AGAIN)
    assert kinds(response) == [(kind, "completed") for kind in (
        "reasoning", "message", "function_call", "function_call", "message", "function_call")]  # fmt: skip
    thought, said, call = response["output"][:3]
    assert (thought["content"], thought["summary"]) == ([{"type": "reasoning_text", "text": "hm"}], [])
    assert said["content"] == [{"type": "output_text", "text": "Well.", "annotations": [], "logprobs": []}]
    assert (call["name"], call["arguments"]) == ("f", '{"x": "a\\"b"}')
    assert len({item["id"] for item in response["output"]}) == 6
    assert response["usage"]["output_tokens"] == len(AGAIN)
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": 3}


def test_what_is_complete_says_when_and_what_was_cut_says_why():
    done, cut = whole(TEXT), whole(CUT, reason="length")
    assert (done["status"], done["incomplete_details"], done["completed_at"]) == ("completed", None, 9)
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert cut["completed_at"] is None
    assert kinds(cut)[-1] == ("function_call", "incomplete")
    assert kinds(whole(TEXT[:12], reason="length")) == [("reasoning", "incomplete")]


def test_a_call_that_the_model_left_open_is_incomplete_in_an_answer_that_is_whole():
    response = whole(CUT)
    assert (response["status"], kinds(response)[-1]) == ("completed", ("function_call", "incomplete"))


def test_an_answer_of_nothing_is_an_empty_message():
    (item,) = whole("")["output"]
    assert item["content"][0]["text"] == ""


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_logprobs_are_those_of_all_tokens(size):
    turn = {"is_plain": True, "logprobs": True}
    final = final_response(streamed("Plain.", size=size, turn=turn))
    assert without_random(final) == without_random(whole("Plain.", turn=turn))
    assert len(final["output"][0]["content"][0]["logprobs"]) == len("Plain.")


def test_a_stream_that_fails_says_so_in_both_ways_and_keeps_what_had_ended():
    events = streamed(TEXT, size=5, reason="error")
    error, failed = events[-2:]
    assert (error["type"], error["code"], error["param"]) == ("error", "internal_error", None)
    assert failed["response"]["error"] == {"code": "server_error", "message": error["message"]}
    assert kinds(final_response(events))[:2] == [("reasoning", "completed"), ("message", "completed")]


def test_what_fails_before_the_first_event_is_no_stream():
    with pytest.raises(ApiError) as failed:
        streamed("x", size=1, reason="error")
    assert failed.value.status == 500
    with pytest.raises(ApiError):
        whole("x", reason="error")


def test_an_answer_repeats_what_was_asked():
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    fields = {"instructions": "i", "metadata": {"a": "b"}, "tools": tools, "tool_choice": "required", "user": "u"}
    response = whole("x", max_output_tokens=7, parallel_tool_calls=False, truncation="auto", **fields)
    assert {name: response[name] for name in fields} == fields
    assert (response["max_output_tokens"], response["parallel_tool_calls"], response["top_p"]) == (7, False, 0.9)
    assert (response["truncation"], response["text"]["format"]) == ("auto", {"type": "text"})
    assert (response["id"], response["object"], response["store"]) == ("resp_r", "response", False)


def test_a_stream_begins_with_the_empty_answer():
    events = streamed("x")
    assert [event["type"] for event in events[:3]] == [*BEGIN, "response.output_item.added"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("resp_1", {"GET", "DELETE"}),
        ("resp_1/cancel", {"POST"}),
        ("resp_1/input_items", {"GET"}),
        ("", set()),
        ("resp_1/x", set()),
        ("resp_1/cancel/x", set()),
    ],
)
def test_the_routes_of_stored_answers_are_known(path, methods):
    assert set(methods_of_stored(path)) == methods
