"""The launcher's end, over processes that do nothing in place of front ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import pytest

from octavo.base.errors import EngineDeadError
from octavo.config.schema import EngineConfig
from octavo.config.server_options import ServerConfig
from octavo.server import launcher
from octavo.server.server import Sockets

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class Hub:
    """Whose engine dies while it starts."""

    def __init__(self, config, *, spawned) -> None:
        self.is_stopped = False

    def connect(self, client_idx):
        return socket.socket()

    async def start(self):
        raise EngineDeadError("the engine did not start: killed by SIGKILL")

    async def stop(self, timeout_s):
        self.is_stopped = True


@pytest.fixture
def broken(monkeypatch):
    """A launcher whose front ends are asleep and whose engine does not start."""
    monkeypatch.setattr(launcher, "EngineHub", Hub)
    monkeypatch.setattr(launcher, "command", lambda *_, **__: SLEEP)
    with socket.socket() as public:
        sockets = Sockets(public=public, url="http://here", tls=None, admin=None)
        yield launcher.Launcher(EngineConfig(server=ServerConfig(api_server_count=2)), sockets)


def test_no_front_end_is_left_to_end_after_the_launcher(broken):
    pids, complaints = [], []
    start = broken._start_front_end

    def noting_start(client_idx):
        start(client_idx)
        pids.append(broken._front_ends[client_idx]._process.pid)

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        broken._start_front_end = noting_start
        with pytest.raises(EngineDeadError, match="did not start"):
            await broken.run()
        left = dict(broken._front_ends)
        await asyncio.sleep(0.2)  # what was left would end now, and ask for what is closed
        assert left == {}

    asyncio.run(scenario())
    assert complaints == []
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
