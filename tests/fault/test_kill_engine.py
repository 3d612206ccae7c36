"""The engine's process dies, hangs or is lied to; the streams of its front end must not notice more than a pause."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
import uvloop
import zmq
from fakes.async_engine import (
    DELTA,
    collect,
    cpu_s,
    is_alive,
    is_healthy,
    kill_engine,
    num_tokens_of,
    request_mix,
    small_engine,
    start_all,
    until,
)

from octavo.base.errors import EngineDeadError, ValidationError
from octavo.fault.policy import RestartPolicy
from octavo.fault.state import EngineState
from octavo.proto.sampling import SamplingParams

pytestmark = pytest.mark.usefixtures("socket_parent")


def have_all_begun(streams, num_tokens=15):
    return all(min(num_tokens_of(stream)) >= num_tokens for stream in streams)


def greedy(num_tokens=150):
    return SamplingParams(max_tokens=num_tokens, ignore_eos=True, temperature=0.0, output_kind=DELTA)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_eight_streams_end_with_the_undisturbed_output_when_the_engine_is_killed(tiny_model, run):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            _, tasks = await start_all(llm, request_mix())
            expected = await asyncio.gather(*tasks)
            streams, tasks = await start_all(llm, request_mix())
            await until(lambda: have_all_begun(streams))
            await kill_engine(llm)
            red_s = await until(lambda: not llm.state.is_ready)
            with pytest.raises(EngineDeadError):
                await llm.check_health()
            green_s = await until(lambda: is_healthy(llm))
            await llm.check_health()
            assert not any(stream.is_ended for stream in streams)
            assert await asyncio.gather(*tasks) == expected
            assert (llm.num_restarts, llm.num_live_requests) == (1, 0)
            assert (red_s < 1.0, green_s < 4.0) == (True, True)

    run(scenario())


def test_text_held_back_for_a_stop_string_survives_the_engine(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            [whole] = (await collect(llm.generate("stop", greedy())))["outputs"].values()
            # Stop in the middle of a text that is known: two characters of it, wherever the kill falls.
            stop = whole["text"][100:103]
            params = greedy().clone(stop=[stop])
            expected = await collect(llm.generate("stop", params))
            for num_tokens in (5, 30):
                [stream], [task] = await start_all(llm, [("stop", params)])
                await until(lambda s=stream, n=num_tokens: min(num_tokens_of(s)) >= n)
                await kill_engine(llm)
                assert await task == expected
                await until(lambda: is_healthy(llm))
            assert expected["outputs"][0]["end"][:2] == ("stop", stop)

    asyncio.run(scenario())


def test_a_request_that_comes_while_no_engine_is_up_waits_for_it(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            expected = await collect(llm.generate("late", greedy(30)))
            await kill_engine(llm)
            await until(lambda: not llm.state.is_ready)
            assert await collect(llm.generate("late", greedy(30))) == expected

    asyncio.run(scenario())


def test_a_second_death_in_a_row_fails_exactly_the_requests_present_in_both(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            expected = await collect(llm.generate("new", greedy()))
            [old], [old_task] = await start_all(llm, [("old", greedy(400))])
            await until(lambda: have_all_begun([old]))
            await kill_engine(llm)
            await until(lambda: llm.num_restarts == 1)
            [new], [new_task] = await start_all(llm, [("new", greedy())])
            await until(lambda: have_all_begun([old, new]))
            await kill_engine(llm)
            reason, _, error = (await old_task)["outputs"][0]["end"]
            assert (reason, "died 2 times" in error) == ("error", True)
            assert await new_task == expected
            assert llm.num_live_requests == 0

    asyncio.run(scenario())


def test_without_replay_streams_end_with_an_error_and_the_next_request_is_served(tiny_model):
    async def scenario():
        async with small_engine(tiny_model, replay=False) as llm:
            streams, tasks = await start_all(llm, [("a", greedy(400)), ("b", greedy(400))])
            await until(lambda: have_all_begun(streams))
            await kill_engine(llm)
            for result in await asyncio.gather(*tasks):
                reason, _, error = result["outputs"][0]["end"]
                assert (reason, "SIGKILL" in error) == ("error", True)
            [after] = (await collect(llm.generate("after", greedy(10))))["outputs"].values()
            assert len(after["ids"]) == 10

    asyncio.run(scenario())


def test_too_many_deaths_in_a_row_end_everything_with_the_cause(tiny_model):
    async def scenario():
        policy = RestartPolicy(max_deaths_in_row=2)
        async with small_engine(tiny_model, restart_policy=policy) as llm:
            await kill_engine(llm)
            await until(lambda: llm.num_restarts == 1)
            await kill_engine(llm)
            await until(lambda: llm.state is EngineState.DEAD)
            assert "2 times in a row" in llm.dead_error
            with pytest.raises(EngineDeadError, match="SIGKILL"):
                await collect(llm.generate("x", greedy(5)))

    asyncio.run(scenario())


def test_a_stopped_engine_is_killed_by_the_watchdog_and_its_streams_go_on(tiny_model):
    async def scenario():
        async with small_engine(tiny_model, stall_timeout_s=1.0) as llm:
            expected = await collect(llm.generate("hang", greedy()))
            [stream], [task] = await start_all(llm, [("hang", greedy())])
            await until(lambda: have_all_begun([stream]))
            await kill_engine(llm, signal.SIGSTOP)
            await until(lambda: llm.state is EngineState.SUSPECT, 1.0)
            await until(lambda: llm.num_restarts == 1, 6.0)
            assert await task == expected

    asyncio.run(scenario())


def test_a_stopped_idle_engine_fails_its_health_check_in_time(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            await kill_engine(llm, signal.SIGSTOP)
            started_s = time.monotonic()
            with pytest.raises(EngineDeadError, match=r"did not answer within 0\.2 s"):
                await llm.check_health(0.2)
            assert time.monotonic() - started_s < 0.5
            await kill_engine(llm, signal.SIGCONT)
            await llm.check_health(2.0)

    asyncio.run(scenario())


def test_an_engine_writes_its_stacks_before_the_watchdog_kills_it(tiny_model, capfd):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            llm._link.kill("a test")
            await until(lambda: llm.num_restarts == 1)
            assert llm.dead_error == "a test"

    asyncio.run(scenario())
    stacks = capfd.readouterr().err
    assert ("run_engine" in stacks, "Thread 0x" in stacks) == (True, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_engine_leaves_signals_for_the_group_to_its_supervisor(tiny_model, number):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            await kill_engine(llm, number)
            await llm.check_health()
            assert llm.num_restarts == 0

    asyncio.run(scenario())


def test_frames_that_are_no_messages_are_dropped_and_streams_go_on(tiny_model, capfd):
    garbage = [
        [b""],
        [os.urandom(1000)],
        [b"\x91" * 10_000],
        [b"a", b"b", b"c"],
        [b"\x82\xa4type\xa3add\xa7request" + b"\x91" * 100_000],
        [b"\x82\xa4type\xa4ping\xa7call_id\xa1x"],
        [b"\x80\x04\x95."],
        [bytes(20 << 20)],
    ]

    async def scenario():
        async with small_engine(tiny_model) as llm:
            expected = await collect(llm.generate("calm", greedy()))
            [stream], [task] = await start_all(llm, [("calm", greedy())])
            await until(lambda: have_all_begun([stream]))
            with zmq.Context() as context:
                for identity in (b"client-7", b"stranger"):
                    with context.socket(zmq.DEALER) as socket:
                        socket.setsockopt(zmq.IDENTITY, identity)
                        socket.setsockopt(zmq.LINGER, 1000)
                        socket.connect(llm._dispatcher.running.address)
                        for frames in garbage:
                            socket.send_multipart(frames)
            assert await task == expected
            await llm.check_health()
            assert llm.num_restarts == 0

    asyncio.run(scenario())
    assert "dropped frame" in capfd.readouterr().err


def test_a_shut_down_engine_leaves_neither_process_nor_file(tiny_model, socket_parent):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            pid = llm.engine_pid
            [folder] = socket_parent.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
        assert not is_alive(pid)
        assert list(socket_parent.iterdir()) == []
        assert llm.state is EngineState.DEAD

    asyncio.run(scenario())


def test_a_stream_that_is_left_is_aborted_in_the_engine(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            async for output in llm.generate("left", greedy(400)):
                if output.outputs[0].token_ids:
                    break
            await until(lambda: llm.num_live_requests == 0)
            task = asyncio.create_task(collect(llm.generate("cancelled", greedy(400))))
            await until(lambda: llm.num_live_requests == 1)
            await until(lambda: llm.num_queued_requests == 0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await until(lambda: llm.num_live_requests == 0)
            stats = (await llm.stats()).scheduler
            assert (stats.num_running, stats.num_waiting, stats.num_finished.get("abort")) == (0, 0, 2)

    asyncio.run(scenario())


@pytest.mark.slow
def test_an_idle_pair_costs_at_most_20_ms_in_10_s(tiny_model):
    async def scenario():
        async with small_engine(tiny_model, {"kernel_backend": "auto"}) as llm:
            await collect(llm.generate("warm", greedy(20)))
            pids = (llm.engine_pid, os.getpid())
            await asyncio.sleep(0.5)
            before_s = sum(cpu_s(pid) for pid in pids)
            await asyncio.sleep(10)
            assert sum(cpu_s(pid) for pid in pids) - before_s <= 0.020

    asyncio.run(scenario())


def constrained(seed: int, **constraint: object) -> SamplingParams:
    return SamplingParams(max_tokens=150, seed=seed, output_kind=DELTA, structured_outputs=constraint)


def test_constrained_streams_go_on_in_their_form_when_the_engine_is_killed(tiny_model):
    """The new engine makes the grammar again and follows it along what was received."""
    requests = [
        ("a", constrained(1, regex=r"([a-z]{2,5} ){25}end")),
        ("b", constrained(2, regex=r"([0-9]{3}-){25}[0-9]")),
        ("c", constrained(3, json={"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 12})),
        ("d", greedy()),
    ]

    async def scenario():
        async with small_engine(tiny_model) as llm:
            _, tasks = await start_all(llm, requests)
            expected = await asyncio.gather(*tasks)
            streams, tasks = await start_all(llm, requests)
            await until(lambda: have_all_begun(streams))
            await kill_engine(llm)
            assert await asyncio.gather(*tasks) == expected
            assert llm.num_restarts == 1
            assert expected[0]["outputs"][0]["end"][0] == "stop"

    asyncio.run(scenario())


def test_a_grammar_that_cannot_be_is_refused_before_the_engine_hears_of_it(tiny_model):
    async def scenario():
        async with small_engine(tiny_model) as llm:
            with pytest.raises(ValidationError, match="properties/a/type") as error:
                await collect(llm.generate("x", constrained(1, json={"properties": {"a": {"type": "stsring"}}})))
            assert error.value.parameter == "structured_outputs.json"
            assert llm.num_live_requests == 0

    asyncio.run(scenario())
