"""Times of one request on a scripted timeline."""

from __future__ import annotations

import json

import pytest

from octavo.base.clock import ManualClock
from octavo.bench.serve.client import ExchangeError
from octavo.bench.serve.record import RequestRecord, StreamRecorder


class Timeline:
    """A record that starts at 100 s, and events at chosen moments after that."""

    def __init__(self):
        self.clock = ManualClock(100.0)
        self.record = RequestRecord(index=0, num_prompt_tokens=5, arrival_s=99.5, start_s=100.0)
        self.recorder = StreamRecorder(self.record)

    def after(self, seconds, *events):
        self.clock.advance(seconds)
        body = b"".join(
            b"data: " + (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n\n"
            for event in events
        )
        self.recorder.on_body(200, body, self.clock.now_s())


def token(text, **fields):
    return {"choices": [{"index": 0, "text": text}], **fields}


def usage(completion, prompt):
    return {"choices": [], "usage": {"completion_tokens": completion, "prompt_tokens": prompt}}


def test_first_token_gaps_and_end_are_counted_from_the_start():
    run = Timeline()
    run.after(0.25, token("a"))
    run.after(0.5, token("b"))
    run.after(0.125, token(""))
    run.after(1.0, usage(9, 6), b"[DONE]")
    run.recorder.finish(200, "OK")
    record = run.record
    assert record.is_success
    assert (record.ttft_s, record.itls_s, record.latency_s) == (0.25, [0.5, 0.125], 0.875)
    assert (record.num_output_tokens, record.num_prompt_tokens, record.num_chunks, record.text) == (9, 6, 4, "ab")
    assert record.queue_s == 0.5
    assert record.end_s == 100.875
    assert record.tpot_s(9) == (0.875 - 0.25) / 8
    assert record.tpot_s(1) is None


def test_several_tokens_in_one_read_have_no_time_between_them():
    run = Timeline()
    run.after(1.0, token("a"), token("b"))
    run.after(2.0, token("c"), b"[DONE]")
    run.recorder.finish(200, "OK")
    assert run.record.itls_s == [0.0, 2.0]


def test_chunks_without_a_choice_are_no_token():
    run = Timeline()
    run.after(1.0, {"choices": []}, {"choices": None}, {})
    run.after(1.0, token("a"), b"[DONE]")
    run.recorder.finish(200, "OK")
    assert (run.record.ttft_s, run.record.itls_s) == (2.0, [])


def test_chat_chunks_are_read_with_their_reasoning():
    run = Timeline()
    run.after(1.0, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    run.after(1.0, {"choices": [{"delta": {"reasoning": "hm "}}]}, {"choices": [{"delta": {"content": "yes"}}]})
    run.after(1.0, {"choices": [{"delta": {"content": None}, "finish_reason": "stop"}]}, b"[DONE]")
    run.recorder.finish(200, "OK")
    assert (run.record.text, run.record.ttft_s) == ("hm yes", 1.0)


def test_usage_in_every_chunk_leaves_the_last():
    run = Timeline()
    for count in (1, 2):
        run.after(1.0, token("a", usage={"completion_tokens": count, "prompt_tokens": 5}))
    run.after(1.0, b"[DONE]")
    run.recorder.finish(200, "OK")
    assert run.record.num_output_tokens == 2
    assert run.record.num_token_chunks == 2


@pytest.mark.parametrize(
    ("events", "error"),
    [([b"[DONE]"], "without a token"), ([], "without a token"), ([token("a")], "before [DONE]")],
)
def test_a_stream_that_is_not_whole_is_a_failure(events, error):
    run = Timeline()
    run.after(1.0, *events)
    run.recorder.finish(200, "OK")
    assert not run.record.is_success
    assert error in run.record.error
    assert run.record.num_token_chunks == 0


def test_an_error_status_is_a_failure_with_the_servers_words():
    run = Timeline()
    for piece in (b'{"error": {"message": "the queue', b' is full", "type": "x"}}'):
        run.recorder.on_body(429, piece, 101.0)
    run.recorder.finish(429, "Too Many Requests")
    assert run.record.error == "HTTP 429 Too Many Requests: the queue is full"
    assert not run.record.is_success


def test_an_error_in_the_stream_ends_it():
    run = Timeline()
    run.after(1.0, token("a"))
    with pytest.raises(ExchangeError, match="error in the stream: the engine died"):
        run.after(1.0, {"error": {"message": "the engine died"}})
    run.recorder.fail("broken")
    assert (run.record.text, run.record.error, run.record.is_success) == ("a", "broken", False)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"choices": 3}'])
def test_what_is_no_chunk_ends_the_stream(data):
    with pytest.raises(ExchangeError, match="not as expected"):
        Timeline().after(1.0, data)
