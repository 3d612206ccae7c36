"""Grammars of strangers, checked in a process of their own: what comes back, and what becomes of one that kills it."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fakes.async_engine import SMALL
from fakes.hf_folder import write_hf_folder

from octavo.base.errors import EngineDeadError, OverloadedError, ValidationError
from octavo.engine.args import EngineArgs
from octavo.engine.grammar_check import checker as module
from octavo.engine.grammar_check.checker import GrammarChecker
from octavo.engine.input.front_parts import make_grammar_backend, read_vocabulary
from octavo.proto.structured import StructuredOutputsParams


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / "tiny")


def config_of(folder, **options):
    return EngineArgs(model=str(folder), **(SMALL | options)).create_engine_config("server")


@asynccontextmanager
async def checking(folder, **options):
    checker = GrammarChecker(config_of(folder), **options)
    try:
        yield checker
    finally:
        checker.close()


def spec(**constraint):
    return StructuredOutputsParams(**(constraint or {"regex": "[a-z]+"})).spec


def regex(number):
    return spec(regex=f"a{{{number}}}")


async def started(checker):
    """The pid of its process."""
    await checker.prepare(spec())
    return checker._process.pid


async def begun(checker, wanted, pid):
    """A check in the middle of which the process stands still."""
    os.kill(pid, signal.SIGSTOP)
    task = asyncio.create_task(checker.prepare(wanted))
    await asyncio.sleep(0.01)
    return task


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_nothing_is_started_before_a_grammar_comes(folder):
    async def scenario():
        async with checking(folder) as checker:
            assert checker._process is None

    run(scenario())


def test_what_is_admitted_compiles_in_the_engine(folder):
    async def scenario():
        async with checking(folder) as checker:
            wanted = spec(json={"type": "object", "properties": {"é": {"type": "integer"}}, "required": ["é"]})
            prepared = await checker.prepare(wanted)
            backend = make_grammar_backend(lambda: read_vocabulary(config_of(folder)))
            assert prepared == backend.prepare(wanted)
            matcher = backend.compile(prepared).start()
            assert not matcher.is_accepting

    run(scenario())


def test_what_is_refused_names_its_place(folder):
    async def scenario():
        async with checking(folder) as checker:
            for _ in range(2):
                with pytest.raises(ValidationError, match="the keyword not is not supported") as caught:
                    await checker.prepare(spec(json={"properties": {"a": {"not": {}}}}))
                assert caught.value.parameter == "structured_outputs.json"
                assert caught.value.value == "/properties/a/not"

    run(scenario())


def test_a_verdict_is_asked_for_once_also_by_those_who_come_together(folder):
    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            first = await begun(checker, regex(3), pid)
            others = [asyncio.create_task(checker.prepare(regex(3))) for _ in range(4)]
            await asyncio.sleep(0)
            assert len(checker._jobs) == 1
            os.kill(pid, signal.SIGCONT)
            found = await asyncio.gather(first, *others)
            os.kill(pid, signal.SIGSTOP)
            assert await checker.prepare(regex(3)) is found[0]

    run(scenario())


def test_a_grammar_that_takes_too_long_is_refused_and_the_next_is_checked_by_a_new_process(folder):
    async def scenario():
        async with checking(folder, timeout_s=0.3) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            behind = asyncio.create_task(checker.prepare(regex(4)))
            with pytest.raises(ValidationError, match=r"structured_outputs\.regex: .*more time or memory") as caught:
                await check
            assert caught.value.parameter == "structured_outputs.regex"
            assert not Path(f"/proc/{pid}").exists()
            checker._timeout_s = 30.0
            assert await behind
            assert checker._process.pid != pid
            with pytest.raises(ValidationError, match="more time or memory"):
                await checker.prepare(regex(3))  # without a second process for it

    run(scenario())


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGXCPU, signal.SIGABRT])
def test_a_grammar_that_kills_the_process_is_refused(folder, number):
    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)
            with pytest.raises(ValidationError, match="more time or memory"):
                await check
            assert await checker.prepare(regex(4))

    run(scenario())


def test_a_process_killed_by_hand_is_no_fault_of_the_grammar(folder):
    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(OverloadedError, match="try again"):
                await check
            assert await checker.prepare(regex(3))

    run(scenario())


def test_a_process_that_died_while_idle_is_replaced(folder):
    async def scenario():
        async with checking(folder) as checker:
            pid, process = await started(checker), checker._process
            os.kill(pid, signal.SIGKILL)
            while process.is_alive:
                await asyncio.sleep(0.01)
            assert await checker.prepare(regex(3))

    run(scenario())


def test_the_event_loop_goes_on_while_a_grammar_is_checked(folder):
    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert await checker.prepare(spec())  # known
            assert not check.done()
            os.kill(pid, signal.SIGCONT)
            assert await check

    run(scenario())


def test_a_client_that_leaves_stops_no_check_and_what_nobody_waits_for_is_not_begun(folder):
    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            behind = asyncio.create_task(checker.prepare(regex(4)))
            await asyncio.sleep(0)
            for task in (check, behind):
                task.cancel()
            await asyncio.gather(check, behind, return_exceptions=True)
            os.kill(pid, signal.SIGCONT)
            assert await checker.prepare(regex(5))
            assert checker._process.pid == pid
            assert checker._verdicts.find(regex(3)) is not None
            assert checker._verdicts.find(regex(4)) is None
            assert not checker._jobs

    run(scenario())


def test_too_many_waiting_grammars_are_refused_at_once(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_PENDING", 1)

    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            check = await begun(checker, regex(3), pid)
            with pytest.raises(OverloadedError, match="limit"):
                await checker.prepare(regex(4))
            os.kill(pid, signal.SIGCONT)
            assert await check

    run(scenario())


def test_a_host_that_asks_for_much_leaves_room_and_turns_to_others(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_PENDING_OF_HOST", 3)

    async def scenario():
        async with checking(folder) as checker:
            pid = await started(checker)
            served = []

            async def ask(number, host):
                await checker.prepare(regex(number), (host, "1"))
                served.append(number)

            os.kill(pid, signal.SIGSTOP)
            tasks = [asyncio.create_task(ask(number, "greedy")) for number in (3, 4, 5)]
            await asyncio.sleep(0.01)
            with pytest.raises(OverloadedError, match="of this client"):
                await checker.prepare(regex(6), ("greedy", "2"))
            tasks.append(asyncio.create_task(ask(7, "other")))
            await asyncio.sleep(0.01)
            os.kill(pid, signal.SIGCONT)
            await asyncio.gather(*tasks)
            assert served in ([3, 4, 7, 5], [3, 7, 4, 5])

    run(scenario())


def test_who_waits_is_told_when_the_server_ends(folder):
    async def scenario():
        async with checking(folder) as checker:
            check = await begun(checker, regex(3), await started(checker))
            checker.close()
            with pytest.raises(EngineDeadError):
                await check

    run(scenario())


def test_a_model_whose_tokenizer_serves_no_grammars_says_so_each_time(folder):
    async def scenario():
        checker = GrammarChecker(config_of(folder, skip_tokenizer_init=True))
        for number in (3, 4):
            with pytest.raises(ValidationError, match="need a tokenizer") as caught:
                await checker.prepare(regex(number))
            assert caught.value.parameter == "structured_outputs"
            assert checker._process is None

    run(scenario())
