"""What becomes of requests and calls while an engine is up."""

from __future__ import annotations

import asyncio

import pytest
from fakes.byte_tokenizer import BrittleTokenizer, PanicException
from fakes.dispatching import LOAD, Harness, all_of, scenario

from octavo.base.errors import CapacityError, EngineDeadError, ValidationError
from octavo.engine.output.processor import OUTPUT_FAULT
from octavo.fault.state import EngineEvent
from octavo.proto.messages import Abort, Add, Deltas, Ping, Pong, Rejected
from octavo.proto.output import RequestDelta


@scenario
async def test_text_comes_out_as_the_engine_gives_it():
    play = Harness()
    stream = play.open()
    assert play.take_sent() == [Add(request=stream.live.request.sequences[0])]
    reader = asyncio.create_task(all_of(stream))
    for text in ("ab", "c"):
        await asyncio.sleep(0)
        play.give(stream, text)
    play.give(stream, "d", finish_reason="length")
    assert await reader == ("abcd", "length", None)
    assert len(play.dispatcher.streams) == 0


@scenario
async def test_a_slow_consumer_gets_one_output_of_everything():
    play = Harness()
    stream = play.open()
    for text in "abcdef":
        play.give(stream, text)
    assert (await anext(stream)).outputs[0].text == "abcdef"
    play.give(stream, "g", finish_reason="length")
    assert (await anext(stream)).outputs[0].text == "g"


@scenario
async def test_a_draining_engine_finishes_and_takes_nothing_new():
    play = Harness()
    stream = play.open()
    play.dispatcher.note(EngineEvent.DRAIN)
    with pytest.raises(EngineDeadError, match="draining"):
        play.open()
    waiting = asyncio.create_task(play.dispatcher.streams.wait_until_empty(5.0))
    await asyncio.sleep(0)
    play.give(stream, "d", finish_reason="length")
    assert await waiting
    assert not await asyncio.create_task(_drain_of_a_stuck_request())


async def _drain_of_a_stuck_request():
    play = Harness()
    play.open()
    return await play.dispatcher.streams.wait_until_empty(0.01)


@pytest.mark.parametrize(("kind", "error"), [("validation", ValidationError), ("capacity", CapacityError)])
def test_what_the_engine_refuses_is_raised_to_the_consumer_and_its_siblings_are_stopped(kind, error):
    async def body():
        play = Harness()
        stream = play.open(n=2)
        play.take_sent()
        play.dispatcher.receive(Rejected(request_id="1_0-x-0", epoch=0, kind=kind, message="no", parameter="prompt"))
        with pytest.raises(error, match="no"):
            await anext(stream)
        assert play.take_sent() == [Abort(request_ids=["0_0-x-0", "1_0-x-0"])]
        assert len(play.dispatcher.streams) == 0

    asyncio.run(body())


@scenario
async def test_an_internal_refusal_ends_the_request_with_an_error():
    play = Harness()
    stream = play.open()
    play.dispatcher.receive(Rejected(request_id="0-x-0", epoch=0, kind="internal", message="a bug"))
    assert await all_of(stream) == ("", "error", "a bug")


@scenario
async def test_a_stop_string_is_told_to_the_engine():
    play = Harness()
    stream = play.open(stop=["b"])
    play.take_sent()
    play.give(stream, "abc")
    assert await all_of(stream) == ("a", "stop", None)
    assert play.take_sent() == [Abort(request_ids=["0-x-0"])]


@scenario
async def test_a_panic_of_the_tokenizer_ends_one_request_of_a_batch():
    play = Harness(tokenizer=BrittleTokenizer(PanicException))
    failing, whole = play.open(), play.open()
    play.take_sent()
    deltas = [
        RequestDelta(request_id=stream.live.request.sequences[0].request_id, epoch=0, token_ids=list(text))
        for stream, text in ((failing, b"!"), (failing, b"more"), (whole, b"fine"))
    ]
    play.dispatcher.receive(Deltas(incarnation=0, deltas=deltas, load=LOAD))
    assert await all_of(failing) == ("", "error", OUTPUT_FAULT.text)
    assert play.take_sent() == [Abort(request_ids=["0-x-0"])]
    play.give(whole, "!", finish_reason="length")
    assert await all_of(whole) == ("fine", "error", OUTPUT_FAULT.text)
    assert len(play.dispatcher.streams) == 0


@scenario
async def test_a_consumer_that_leaves_stops_the_engine_once():
    play = Harness()
    stream = play.open()
    play.take_sent()
    play.dispatcher.leave(stream)
    play.dispatcher.leave(stream)
    assert play.take_sent() == [Abort(request_ids=["0-x-0"])]
    play.give(stream, "late")


@scenario
async def test_an_abort_by_name_ends_all_of_that_name():
    play = Harness()
    streams = [play.open(name="same"), play.open(name="same"), play.open(name="other")]
    play.dispatcher.abort(["same", "unknown"])
    assert [stream.is_ended for stream in streams] == [True, True, False]
    assert (await all_of(streams[0]))[1] == "abort"


@scenario
async def test_a_deadline_ends_a_request_that_the_engine_cannot_end():
    play = Harness()
    stream = play.open(deadline_s=50.01)
    play.die()
    text, reason, error = await asyncio.wait_for(all_of(stream), 2.0)
    assert (text, reason, error) == ("", "error", "the deadline has passed")


@scenario
async def test_a_request_too_large_to_send_is_refused_and_leaves_nothing():
    play = Harness()
    play.link.is_narrow = True
    with pytest.raises(ValidationError, match="too large"):
        play.open()
    assert (len(play.dispatcher.streams), play.dispatcher.streams.queue.num_requests) == (0, 0)


@scenario
async def test_the_queue_is_what_no_engine_has_reported_on():
    play = Harness()
    streams = [play.open(), play.open(), play.open()]
    table = play.dispatcher.streams
    assert (table.queue.num_requests, table.queue.num_tokens) == (3, 9)
    play.give(streams[0], "a")
    play.give(streams[0], "b")
    play.dispatcher.leave(streams[1])
    assert (table.queue.num_requests, table.queue.num_tokens) == (1, 3)
    play.die()
    play.up()
    assert (table.queue.num_requests, table.queue.num_tokens) == (1, 3)


@scenario
async def test_a_call_is_answered_by_its_id_and_fails_with_the_engine():
    play = Harness()
    calls = [asyncio.create_task(play.dispatcher.call(lambda i: Ping(call_id=i), 5.0)) for _ in range(2)]
    await asyncio.sleep(0)
    play.dispatcher.receive(Pong(call_id=0, load=LOAD))
    assert (await calls[0]).call_id == 0
    play.die()
    with pytest.raises(EngineDeadError, match="killed"):
        await calls[1]
    with pytest.raises(EngineDeadError, match="recovering"):
        await play.dispatcher.call(lambda i: Ping(call_id=i), 5.0)


@scenario
async def test_a_call_without_an_answer_ends_at_its_time():
    play = Harness()
    with pytest.raises(EngineDeadError, match=r"did not answer within 0\.01 s"):
        await play.dispatcher.call(lambda i: Ping(call_id=i), 0.01)


@scenario
async def test_watching_begins_with_the_first_request_and_with_a_successor_that_has_work():
    play = Harness()
    play.open()
    play.open()
    assert play.watch.num_begun == 1
    play.die()
    play.up()
    assert play.watch.num_begun == 2
