"""What becomes of requests and calls while engines come, answer, refuse and die."""

from __future__ import annotations

import asyncio

import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.clock import ManualClock
from octavo.base.errors import CapacityError, EngineDeadError, ValidationError
from octavo.engine.dispatch import Dispatcher
from octavo.engine.inputs import PreparedRequest
from octavo.engine.outputs import LiveRequest
from octavo.engine.prompts import Prompt
from octavo.engine.streams import OutputStream
from octavo.engine.supervisor import RunningEngine
from octavo.fault.state import EngineEvent, EngineState
from octavo.proto.codec import ProtocolError
from octavo.proto.messages import Abort, Add, Deltas, Load, Ping, Pong, Rejected
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.result import TokenLogprobs
from octavo.proto.sampling import RequestOutputKind, SamplingParams

LOAD = Load(num_steps=1, num_running=0, num_waiting=0)


class FakeLink:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []
        self.is_narrow = False

    def send(self, message):
        if self.is_narrow and isinstance(message, Add):
            raise ProtocolError("too large")
        self.sent.append(message)


class FakeWatch:
    def __init__(self):
        self.num_begun = 0
        self.loads = []

    def work_began(self):
        self.num_begun += 1

    def heard(self, load):
        self.loads.append(load)


class Harness:
    """A dispatcher with an engine that is up, and hands to play the engine."""

    def __init__(self, *, replay=True):
        self.clock = ManualClock(50.0)
        self.link, self.watch = FakeLink(), FakeWatch()
        self.dispatcher = Dispatcher(self.clock, replay=replay)
        self.dispatcher.attach(self.link, self.watch)
        self.num_streams = 0
        self.num_engines = 0
        self.up()

    def up(self):
        self.dispatcher.engine_up(
            RunningEngine(address="", incarnation=self.num_engines, config=None, phases={"weights": 1.0})
        )
        self.num_engines += 1

    def die(self, *, is_in_row=True):
        self.dispatcher.engine_down("killed", is_in_row=is_in_row)
        self.dispatcher.engine_restarting()

    def open(self, *, name="r", deadline_s=None, **params):
        given = {"output_kind": RequestOutputKind.DELTA, "max_tokens": 20} | params
        sampling = SamplingParams(**given)
        prefix = f"0-x-{self.num_streams}"
        self.num_streams += 1
        sequences = [
            NewRequest(
                request_id=prefix if sampling.n == 1 else f"{index}_{prefix}",
                prompt_token_ids=[1, 2, 3],
                sampling=sampling,
                max_tokens=20,
                seed=0,
                deadline_s=deadline_s,
            )
            for index in range(sampling.n)
        ]
        prepared = PreparedRequest(
            request_id=name, prompt=Prompt(token_ids=[1, 2, 3]), sampling=sampling, sequences=sequences
        )
        stream = OutputStream(LiveRequest(prepared, ByteTokenizer()))
        self.dispatcher.open(stream)
        return stream

    def give(self, stream, text="", *, index=0, epoch=None, incarnation=None, **fields):
        sequence = stream.live.request.sequences[index]
        delta = RequestDelta(
            request_id=sequence.request_id,
            epoch=sequence.epoch if epoch is None else epoch,
            token_ids=list(text.encode()),
            **fields,
        )
        number = self.num_engines - 1 if incarnation is None else incarnation
        self.dispatcher.receive(Deltas(incarnation=number, deltas=[delta], load=LOAD))

    def take_sent(self):
        sent, self.link.sent = self.link.sent, []
        return sent


async def all_of(stream):
    """(text, finish reason, error) of a stream of one sequence."""
    text, end = "", None
    async for output in stream:
        for part in output.outputs:
            text += part.text
            end = part
    return text, end.finish_reason, end.error


def scenario(function):
    """A test whose body runs on an event loop."""

    def run_it():
        asyncio.run(function())

    run_it.__name__ = function.__name__
    return run_it


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
async def test_a_successor_gets_what_was_received_and_the_text_goes_on():
    play = Harness()
    stream = play.open()
    play.give(stream, "ab")
    play.take_sent()
    play.die()
    assert play.dispatcher.state is EngineState.RECOVERING
    play.up()
    (add,) = play.take_sent()
    assert (bytes(add.request.output_token_ids), add.request.epoch) == (b"ab", 1)
    play.give(stream, "c", finish_reason="length")
    assert await all_of(stream) == ("abc", "length", None)
    assert play.dispatcher.num_restarts == 1


@scenario
async def test_only_sequences_that_have_not_ended_are_run_again():
    play = Harness()
    stream = play.open(n=2)
    play.give(stream, "a", index=0, finish_reason="length")
    play.take_sent()
    play.die()
    play.up()
    assert [add.request.request_id for add in play.take_sent()] == ["1_0-x-0"]


@scenario
async def test_deltas_of_a_dead_engine_or_an_old_epoch_change_nothing():
    play = Harness()
    stream = play.open()
    play.die()
    play.up()
    play.give(stream, "x", incarnation=0)
    play.give(stream, "y", epoch=0)
    play.give(stream, "z", finish_reason="length")
    assert await all_of(stream) == ("z", "length", None)


@scenario
async def test_prompt_logprobs_are_reported_once_although_the_successor_reports_them_again():
    play = Harness()
    entries = [TokenLogprobs([token], [-1.0], [1]) for token in (2, 3)]
    stream = play.open(prompt_logprobs=0)
    play.give(stream, prompt_logprobs=entries[:1])
    play.die()
    play.up()
    play.give(stream, prompt_logprobs=entries[:1])
    play.give(stream, "a", prompt_logprobs=entries[1:], finish_reason="length")
    got = [entry async for output in stream for entry in output.prompt_logprobs]
    assert [None if entry is None else list(entry) for entry in got] == [None, [2], [3]]


@scenario
async def test_two_deaths_in_a_row_end_what_was_in_both():
    play = Harness()
    old = play.open()
    play.die()
    play.up()
    new = play.open()
    play.die()
    play.up()
    assert (await all_of(old))[1] == "error"
    play.give(new, "n", finish_reason="length")
    assert await all_of(new) == ("n", "length", None)


@scenario
async def test_deaths_with_a_long_life_between_them_do_not_add_up():
    play = Harness()
    stream = play.open()
    play.die()
    play.up()
    play.die(is_in_row=False)
    play.up()
    play.give(stream, "s", finish_reason="length")
    assert await all_of(stream) == ("s", "length", None)


@scenario
async def test_a_request_that_waited_out_a_death_was_not_in_it():
    play = Harness()
    play.die()
    stream = play.open()
    assert play.take_sent() == []
    play.dispatcher.engine_down("killed while loading", is_in_row=True)
    play.dispatcher.engine_restarting()
    play.up()
    assert (stream.num_deaths, len(play.take_sent())) == (0, 1)


@scenario
async def test_without_replay_what_was_in_the_engine_ends_and_what_waits_is_kept():
    play = Harness(replay=False)
    inside = play.open()
    play.die()
    waiting = play.open()
    assert await all_of(inside) == ("", "error", "the engine died: killed")
    play.up()
    play.give(waiting, "w", finish_reason="length")
    assert await all_of(waiting) == ("w", "length", None)


@scenario
async def test_when_the_engine_is_given_up_everything_ends_and_nothing_is_taken():
    play = Harness()
    stream = play.open()
    play.die()
    play.dispatcher.engine_dead("five deaths")
    assert (await all_of(stream))[1:] == ("error", "the engine is dead: five deaths")
    with pytest.raises(EngineDeadError, match="dead and takes no requests: five deaths"):
        play.open()


@scenario
async def test_a_draining_engine_finishes_and_takes_nothing_new():
    play = Harness()
    stream = play.open()
    play.dispatcher.note(EngineEvent.DRAIN)
    with pytest.raises(EngineDeadError, match="draining"):
        play.open()
    waiting = asyncio.create_task(play.dispatcher.wait_until_empty(5.0))
    await asyncio.sleep(0)
    play.give(stream, "d", finish_reason="length")
    assert await waiting
    assert not await asyncio.create_task(_drain_of_a_stuck_request())


async def _drain_of_a_stuck_request():
    play = Harness()
    play.open()
    return await play.dispatcher.wait_until_empty(0.01)


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
    assert (len(play.dispatcher.streams), play.dispatcher.streams.num_queued_requests) == (0, 0)


@scenario
async def test_a_request_too_large_to_send_again_ends_with_an_error():
    play = Harness()
    large, other = play.open(), play.open()
    play.give(large, "received")
    play.die()
    play.link.is_narrow = True
    play.up()
    assert (await all_of(large))[:2] == ("received", "error")
    assert (await all_of(other))[:2] == ("", "error")


@scenario
async def test_the_queue_is_what_no_engine_has_reported_on():
    play = Harness()
    streams = [play.open(), play.open(), play.open()]
    table = play.dispatcher.streams
    assert (table.num_queued_requests, table.num_queued_tokens) == (3, 9)
    play.give(streams[0], "a")
    play.give(streams[0], "b")
    play.dispatcher.leave(streams[1])
    assert (table.num_queued_requests, table.num_queued_tokens) == (1, 3)
    play.die()
    play.up()
    assert (table.num_queued_requests, table.num_queued_tokens) == (1, 3)


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
