"""What clients are told of a request that failed on the way: nothing of the inside, on every API, streamed or not."""

import asyncio
import json
import re
from types import SimpleNamespace

import pytest
from fakes.spoken_turns import FakeEngine, make_turn

from octavo.server.anthropic.endpoint import answer_message
from octavo.server.anthropic.route import adopt
from octavo.server.api.completion_types import CompletionRequest
from octavo.server.api.logprobs import TokenNames
from octavo.server.chat_stream import stream_chat
from octavo.server.completion_stream import CompletionCall, stream_completion
from octavo.server.cycle import ClientDisconnectedError
from octavo.server.errors import ApiError, as_api_error
from octavo.server.exchange import Exchange
from octavo.server.responses.endpoint import answer_whole
from octavo.server.responses.request import ResponsesRequest
from octavo.server.responses.stream import stream_response
from octavo.server.running import collect

SECRET = "OSError: /a/path is broken"
CONFIG = SimpleNamespace(
    stream_interval=1,
    sse_keep_alive_interval=0,
    enable_force_include_usage=False,
    enable_prompt_tokens_details=True,
)


async def _chat(exchange, service):
    await stream_chat(exchange, service, make_turn(stream=True, is_plain=True))


async def _message(exchange, service):
    adopt(exchange)
    await answer_message(exchange, service, make_turn(stream=True, is_plain=True))


async def _response(exchange, service):
    request = ResponsesRequest(input="x", stream=True)
    await stream_response(exchange, service, request, make_turn(stream=True, is_plain=True))


async def _completion(exchange, service):
    call = CompletionCall(
        request=CompletionRequest(prompt="x", stream=True),
        id="c",
        model="m",
        prepared=[None],
        echoed=[],
        scores_only=False,
        names=TokenNames(None, as_ids=False),
        n=1,
    )
    await stream_completion(exchange, service, call)


STREAMS = [_chat, _message, _response, _completion]


def failing(kind, text=SECRET, size=1):
    engine = FakeEngine(["Plain."], size, reason="error")
    engine.error, engine.error_kind = text, kind
    return engine


def service_of(engine):
    names = SimpleNamespace(in_reasoning=True, in_reasoning_content=True)
    return SimpleNamespace(engine=engine, config=CONFIG, now_s=lambda: 9, fingerprint="f", reasoning_names=names)


def streamed(stream, engine):
    body = bytearray()

    async def send(message):
        body.extend(message.get("body", b""))

    exchange = Exchange({"method": "POST", "headers": []}, None, send, "/")
    asyncio.run(stream(exchange, service_of(engine)))
    return body.decode(), exchange.notes["error"]


def failure_of(engine):
    with pytest.raises(ApiError) as failed:
        asyncio.run(collect(engine, [None]))
    return failed.value


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_says_nothing_of_a_fault_of_ours_but_its_id(stream, caplog):
    text, code = streamed(stream, failing("internal"))
    assert "path" not in text
    assert code == "internal_error"
    (error_id,) = set(re.findall("error id ([0-9a-f]{16})", text))
    assert error_id in caplog.text
    assert SECRET in caplog.text


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_says_why_a_request_could_not_be_finished(stream):
    text, code = streamed(stream, failing("request", "no token is left"))
    assert "no token is left" in text
    assert code == "constraint_failed"


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [("internal", 500, "internal_error"), (None, 500, "internal_error"), ("limit", 500, "request_failed"),
     ("request", 422, "constraint_failed"), ("numeric", 500, "numerical_error"),
     ("deadline", 504, "deadline_exceeded")],
)  # fmt: skip
def test_an_answer_at_once_has_a_status_for_each_kind(kind, status, code):
    error = failure_of(failing(kind, size=1000))
    assert (error.status, error.code) == (status, code)
    assert ("path" in error.message) == (kind not in ("internal", None))
    types = {422: "invalid_request_error", 500: "internal_server_error", 504: "timeout_error"}
    assert error.type == types[status]
    assert ("x-should-retry" in error.headers) == (kind in ("numeric", "deadline"))


def test_responses_that_are_not_streamed_tell_no_more():
    service = service_of(failing("internal", size=1000))
    exchange = Exchange({"method": "POST", "headers": []}, None, None, "/")
    with pytest.raises(ApiError) as failed:
        asyncio.run(answer_whole(exchange, service, ResponsesRequest(input="x"), make_turn(is_plain=True)))
    assert "path" not in json.loads(as_api_error(failed.value, "r").body())["error"]["message"]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("kind", "expected"), [("deadline", "deadline_exceeded"), ("numeric", "numerical_error")])
def test_a_stream_that_has_begun_ends_with_the_error_of_its_kind(stream, kind, expected):
    text, code = streamed(stream, failing(kind, "because of this"))
    assert "because of this" in text
    assert code == expected
    if stream is _message:
        assert json.loads(text.rsplit("data: ", 1)[1])["error"]["type"] == (
            "timeout_error" if kind == "deadline" else "api_error"
        )


@pytest.mark.parametrize("stream", STREAMS)
def test_what_fails_before_the_first_chunk_is_still_answered_with_a_status(stream):
    with pytest.raises(ApiError) as failed:
        streamed(stream, failing("request", "no token is left", size=1000))
    assert failed.value.status == 422


@pytest.mark.parametrize("stream", STREAMS)
def test_a_client_that_is_gone_gets_no_last_words(stream):
    num_sent = 0

    async def send(message):
        nonlocal num_sent
        if message["type"] == "http.response.body":
            num_sent += 1
            raise ClientDisconnectedError

    exchange = Exchange({"method": "POST", "headers": []}, None, send, "/")
    with pytest.raises(ClientDisconnectedError):
        asyncio.run(stream(exchange, service_of(failing("internal"))))
    assert num_sent == 1
