"""Several front-end processes share one engine: names stay apart, a dead one is forgotten, its death is survived."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import zmq
from fakes.async_engine import SMALL, until

from octavo.config.load import load_config
from octavo.engine.process.hub import EngineHub
from octavo.proto.codec import client_codec, engine_codec
from octavo.proto.messages import EngineUp, GetStats

FRONT_END = Path(__file__).with_name("front_end.py")
NUM_TOKENS = 450  # long enough for a death to come in the middle


class FrontEndProgram:
    """A running front_end.py."""

    def __init__(self, process):
        self.process = process

    async def line(self):
        return (await asyncio.wait_for(self.process.stdout.readline(), 20)).decode().strip()

    async def begin(self, prompt):
        self.process.stdin.write(f"{prompt}\n".encode())
        await self.process.stdin.drain()
        assert await self.line() == "begun"

    async def ids(self):
        return json.loads(await self.line())


async def start_front_end(hub, model, client_idx):
    with hub.connect(client_idx) as end:
        arguments = [sys.executable, str(FRONT_END), str(model), str(client_idx), str(end.fileno()), str(NUM_TOKENS)]
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, pass_fds=[end.fileno()]
        )
    return FrontEndProgram(process)


@asynccontextmanager
async def hub_with_front_ends(model):
    hub = EngineHub(load_config({"model": str(model), **SMALL}, usage="server"))
    programs = [await start_front_end(hub, model, client_idx) for client_idx in range(2)]
    try:
        await hub.start()
        assert [await program.line() for program in programs] == ["ready", "ready"]
        yield hub, programs
    finally:
        await hub.stop(5.0)
        for program in programs:
            if program.process.returncode is None:
                program.process.kill()
            await program.process.communicate()


async def scheduler_stats(hub, client_idx=999):
    """Asked as one more front end."""
    assert isinstance(hub._latest, EngineUp)
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.IDENTITY, f"client-{client_idx}".encode())
        socket.connect(hub._latest.address)
        socket.send(client_codec().encode(GetStats(call_id=1)))
        assert await asyncio.to_thread(socket.poll, 5000)
        return engine_codec().decode(socket.recv()).stats.scheduler


async def until_ended(hub, reason, timeout_s=2.0):
    """Nothing runs, and one request has ended for this reason: the engine hears of a death a moment after the hub."""
    asked_until_s = asyncio.get_running_loop().time() + timeout_s
    client_idx = 900
    while (stats := await scheduler_stats(hub, client_idx)).num_running:
        assert asyncio.get_running_loop().time() < asked_until_s
        client_idx += 1  # an engine answers a name once; a new socket needs a new one
        await asyncio.sleep(0.02)
    assert stats.num_finished.get(reason) == 1


def test_two_front_ends_use_the_same_ids_and_survive_the_engine(tiny_model, socket_parent):
    async def scenario():
        async with hub_with_front_ends(tiny_model) as (hub, programs):
            expected = []
            for program, prompt in zip(programs, ("first", "second"), strict=True):
                await program.begin(prompt)
                expected.append(await program.ids())
            for program, prompt in zip(programs, ("first", "second"), strict=True):
                await program.begin(prompt)
            os.kill(hub.supervisor.pid, signal.SIGKILL)
            assert [await program.ids() for program in programs] == expected
            assert len(set(map(tuple, expected))) == 2
            assert hub._incarnation == 1

    asyncio.run(scenario())


def test_the_requests_of_a_dead_front_end_end_and_its_successor_is_served(tiny_model, socket_parent):
    async def scenario():
        async with hub_with_front_ends(tiny_model) as (hub, programs):
            await programs[0].begin("orphan")
            programs[0].process.kill()
            await programs[0].process.communicate()
            await until(lambda: 0 not in hub._channels)
            await until_ended(hub, "abort")
            programs[0] = await start_front_end(hub, tiny_model, 0)
            assert await programs[0].line() == "ready"
            await programs[0].begin("successor")
            assert len(await programs[0].ids()) == NUM_TOKENS

    asyncio.run(scenario())
