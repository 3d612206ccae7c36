from __future__ import annotations

import asyncio
import time

import pytest
from fakes.sse_server import Script, serving

from octavo.base.clock import MonotonicClock
from octavo.bench.samples import Sample
from octavo.bench.serve import sender as sender_module
from octavo.bench.serve.backends import BACKENDS, BodyOptions
from octavo.bench.serve.client import HttpClient, Target
from octavo.bench.serve.sender import RequestSender, ServerError, find_model, read_speculation, wait_until_ready

SAMPLE = Sample([1, 2, 3], 3, text="hello")


def with_sender(script, work, *, backend="openai", models=("m",), timeout_s=5.0):
    async def run():
        async with serving(script) as url:
            client = HttpClient(Target.from_url(url, headers={"x-extra": "1"}), MonotonicClock())
            sender = RequestSender(
                client,
                BACKENDS[backend],
                BodyOptions(models=models),
                clock=MonotonicClock(),
                request_id_prefix="id-",
                timeout_s=timeout_s,
            )
            try:
                return await work(client, sender)
            finally:
                client.close()

    return asyncio.run(run())


def send(script, **options):
    return with_sender(script, lambda _, sender: sender.send(SAMPLE, 4, arrival_s=0.0), **options)


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
@pytest.mark.parametrize("piece_bytes", [None, 3])
def test_an_answer_is_recorded(backend, piece_bytes):
    script = Script(piece_bytes=piece_bytes)
    record = send(script, backend=backend)
    assert (record.is_success, record.error, record.text) == (True, "", "t0 t1 t2 ")
    assert (record.num_output_tokens, record.num_prompt_tokens, len(record.itls_s)) == (3, 7, 2)
    (request,) = script.requests
    assert request["path"] == BACKENDS[backend].endpoint
    assert request["headers"]["x-request-id"] == "id-4"
    assert request["headers"]["x-extra"] == "1"


def test_gaps_of_a_slow_server_are_measured():
    record = send(Script(num_tokens=3, gap_s=0.03))
    assert 0.03 <= record.ttft_s < 0.5
    assert all(0.02 <= itl_s < 0.5 for itl_s in record.itls_s)
    assert record.latency_s == pytest.approx(record.ttft_s + sum(record.itls_s))


def test_models_take_turns():
    script = Script()

    async def send_three(_, sender):
        for index in range(3):
            await sender.send(SAMPLE, index, arrival_s=0.0)

    with_sender(script, send_three, models=("a", "b"))
    assert [request["body"]["model"] for request in script.requests] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (Script(status=503), "HTTP 503 X: no room"),
        (Script(error_after=1), "error in the stream: the engine died"),
        (Script(break_after=2), "unfinished response"),
        (Script(sends_done=False), "before [DONE]"),
        (Script(num_tokens=0), "without a token"),
        (Script(hangs=True), "no whole answer within"),
    ],
)
def test_what_goes_wrong_is_in_the_record(script, error):
    record = send(script, timeout_s=0.3)
    assert not record.is_success
    assert error in record.error


def test_a_server_without_usage_leaves_the_count_open():
    record = send(Script(sends_usage=False))
    assert (record.is_success, record.num_output_tokens, record.num_token_chunks) == (True, None, 3)


def test_the_first_model_is_found_with_its_files():
    found = with_sender(Script(), lambda client, _: find_model(client, ready_timeout_s=0))
    assert (found.name, found.root) == ("tiny", "/models/tiny")


def test_no_server_is_named_with_what_to_do():
    async def run():
        client = HttpClient(Target.from_url("http://127.0.0.1:1", headers={}), MonotonicClock())
        await find_model(client, ready_timeout_s=0)

    with pytest.raises(ServerError, match=r"127\.0\.0\.1:1: cannot connect.*--ready-check-timeout-sec"):
        asyncio.run(run())


def test_a_server_that_becomes_ready_is_waited_for(monkeypatch):
    monkeypatch.setattr(sender_module, "READY_INTERVAL_S", 0.01)
    script = Script(status=503)

    async def wait(_, sender):
        asyncio.get_running_loop().call_later(0.05, setattr, script, "status", 200)
        await wait_until_ready(sender, SAMPLE, timeout_s=5)

    with_sender(script, wait)
    assert len(script.requests) > 1


def test_a_server_that_does_not_become_ready_is_given_up_with_its_last_answer(monkeypatch):
    monkeypatch.setattr(sender_module, "READY_INTERVAL_S", 0.01)
    started_s = time.monotonic()
    with pytest.raises(ServerError, match="HTTP 503 X: no room"):
        with_sender(Script(status=503), lambda _, sender: wait_until_ready(sender, SAMPLE, timeout_s=0.05))
    assert time.monotonic() - started_s < 5


def test_counters_of_speculative_decoding_are_read():
    script = Script(metrics="vllm:spec_decode_num_drafts_total 5\n")
    assert with_sender(script, lambda client, _: read_speculation(client)).num_drafts == 5
    assert with_sender(Script(), lambda client, _: read_speculation(client)) is None
