"""What becomes of requests when their engine dies."""

from __future__ import annotations

import pytest
from fakes.dispatching import Harness, all_of, scenario

from octavo.base.errors import EngineDeadError
from octavo.fault.state import EngineState
from octavo.proto.result import TokenLogprobs


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
async def test_a_request_too_large_to_send_again_ends_with_an_error():
    play = Harness()
    large, other = play.open(), play.open()
    play.give(large, "received")
    play.die()
    play.link.is_narrow = True
    play.up()
    assert (await all_of(large))[:2] == ("received", "error")
    assert (await all_of(other))[:2] == ("", "error")
