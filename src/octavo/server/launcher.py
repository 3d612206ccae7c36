"""Several front-end processes on one port, with one engine: `--api-server-count N`.

Owns: starting front ends, replacing those that die, ending them. The engine's supervisor runs here (`engine/process`).
Does not own: what a front end does (front_end.py, server.py).
All accept from one socket that was bound before anything was loaded. /load, /metrics and the limits on what waits are
of all together (obs/server_load.py); the limit on connections is dealt out among them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

import msgspec

from octavo.base.errors import EngineDeadError, OctavoError
from octavo.base.log import get_logger
from octavo.base.units import ceil_div
from octavo.config.schema import EngineConfig
from octavo.engine.process.child import describe_exit
from octavo.engine.process.entry import command
from octavo.engine.process.hub import EngineHub
from octavo.engine.process.spawned import SpawnedEngine
from octavo.fault.policy import GiveUp, RestartPolicy
from octavo.obs.catalogue import FRONT_END_METRICS
from octavo.obs.counters import CounterLayout, Counters, create_shared
from octavo.server.front_end import FrontEndStart
from octavo.server.server import EXIT_ENGINE_DEAD, FLUSH_TIMEOUT_S, SIGNALS, Sockets, first_of, interrupted_text

logger = get_logger(__name__)

ENGINE_STOP_TIMEOUT_S = 5.0
KILL_TIMEOUT_S = 5.0
"""A killed process has ended in milliseconds, unless the kernel is in the middle of something for it."""


class FrontEnd:
    """A handle on one front-end process. `on_exit` is called once, with it."""

    def __init__(self, start: FrontEndStart, pass_fds: list[int], on_exit: Callable[[FrontEnd, int], None]) -> None:
        self.client_idx = start.client_idx
        self.started_s = time.monotonic()
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        start_fd = os.memfd_create("octavo-front-end")
        try:
            os.write(start_fd, msgspec.msgpack.encode(start))
            os.lseek(start_fd, 0, os.SEEK_SET)
            run = command(
                "octavo.server.front_end",
                str(start_fd),
                str(os.getpid()),
                at_parents_death=signal.SIGKILL,
                ignored=(signal.SIGHUP, signal.SIGINT),
            )
            self._process = subprocess.Popen(run, pass_fds=[start_fd, *pass_fds], stdin=subprocess.DEVNULL)
        finally:
            os.close(start_fd)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._reap)

    def signal(self, number: int) -> None:
        """Send a signal; to a process that has ended nothing."""
        if self._pidfd >= 0:
            signal.pidfd_send_signal(self._pidfd, number)

    def forget(self) -> None:
        """`on_exit` is not called any more."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1

    def _reap(self) -> None:
        code = self._process.wait()
        self.forget()
        self._on_exit(self, code)


class Launcher:
    """The parent of N front ends and of the engine."""

    def __init__(
        self,
        config: EngineConfig,
        sockets: Sockets,
        *,
        policy: RestartPolicy | None = None,
        spawned: SpawnedEngine | None = None,
    ) -> None:
        self._num_front_ends = config.server.api_server_count
        self._config = _share_limits(config, self._num_front_ends)
        self._sockets = sockets
        self._policy = policy or RestartPolicy()
        self._hub = EngineHub(config, spawned=spawned)
        self._counter_layout = CounterLayout(FRONT_END_METRICS)
        self._counters_fd = create_shared(self._counter_layout, self._num_front_ends)
        self._front_ends: dict[int, FrontEnd] = {}
        self._num_deaths = [0] * self._num_front_ends
        self._ready: set[int] = set()
        self._failure: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()
        self._is_ending = False
        """No front end is started again."""
        self._signal: int | None = None
        self._changed = asyncio.Event()

    async def run(self) -> int:
        """From starting the front ends to the end. Raises what the engine's start raises, and EngineDeadError."""
        loop = asyncio.get_running_loop()
        self._failure = loop.create_future()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            for client_idx in range(self._num_front_ends):
                self._start_front_end(client_idx)
            logger.info("%d front ends on %s", self._num_front_ends, self._sockets.url)
            is_up = await first_of(self._hub.start(), self._stop.wait()) == 0
            if is_up:
                await first_of(self._stop.wait(), self._failure)
            await self._end_front_ends()
        finally:
            await self._kill_front_ends()
            await self._hub.stop(ENGINE_STOP_TIMEOUT_S)
            os.close(self._counters_fd)
        if not is_up and self._signal is not None:
            logger.error("%s", interrupted_text(self._signal))
            return 128 + self._signal
        return 0

    def _start_front_end(self, client_idx: int) -> None:
        admin = self._sockets.admin if client_idx == 0 else None
        ready_read, ready_write = os.pipe()
        with self._hub.connect(client_idx) as channel:
            start = FrontEndStart(
                config=msgspec.Raw(msgspec.msgpack.encode(self._config)),
                client_idx=client_idx,
                num_front_ends=self._num_front_ends,
                url=self._sockets.url,
                listen_fd=self._sockets.public.fileno(),
                channel_fd=channel.fileno(),
                counters_fd=self._counters_fd,
                ready_fd=ready_write,
                admin_fd=admin.fileno() if admin is not None else None,
            )
            fds = [start.listen_fd, start.channel_fd, start.counters_fd, start.ready_fd]
            fds += [start.admin_fd] if start.admin_fd is not None else []
            self._front_ends[client_idx] = FrontEnd(start, fds, self._on_exit)
        os.close(ready_write)
        asyncio.get_running_loop().add_reader(ready_read, self._on_ready, client_idx, ready_read)

    def _on_ready(self, client_idx: int, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        is_ready = os.read(fd, 1) != b""
        os.close(fd)
        if not is_ready:
            return
        num_before = len(self._ready)
        self._ready.add(client_idx)
        if num_before < len(self._ready) == self._num_front_ends:
            logger.info("Application startup complete.")

    def _on_exit(self, front_end: FrontEnd, code: int) -> None:
        client_idx = front_end.client_idx
        del self._front_ends[client_idx]
        self._counters(client_idx).clear_gauges()
        self._changed.set()
        assert self._failure is not None
        if self._stop.is_set() or self._is_ending or self._failure.done():
            return
        if code == EXIT_ENGINE_DEAD:
            self._failure.set_exception(EngineDeadError("the engine is dead and was given up"))
            return
        what = describe_exit(code).replace("engine process", f"front end {client_idx}")
        logger.warning("%s", what)
        is_in_row = self._policy.is_in_row(time.monotonic() - front_end.started_s)
        self._num_deaths[client_idx] = self._num_deaths[client_idx] + 1 if is_in_row else 1
        decision = self._policy.decide(self._num_deaths[client_idx])
        if isinstance(decision, GiveUp):
            reason = decision.reason.replace("the engine", f"front end {client_idx}")
            self._failure.set_exception(OctavoError(f"{reason}; the last time: {what}"))
            return
        asyncio.get_running_loop().call_later(decision.delay_s, self._replace, client_idx)

    def _counters(self, client_idx: int) -> Counters:
        return Counters.attach(self._counter_layout, self._counters_fd, num_pages=self._num_front_ends, page=client_idx)

    def _replace(self, client_idx: int) -> None:
        if not self._stop.is_set() and not self._is_ending:
            self._start_front_end(client_idx)

    async def _end_front_ends(self) -> None:
        logger.info("stopping: front ends finish what they have")
        for front_end in self._front_ends.values():
            front_end.signal(signal.SIGTERM)
        limit_s = self._config.server.shutdown_timeout + 2 * FLUSH_TIMEOUT_S
        if not await self._wait_for_front_ends(limit_s):
            logger.warning("%d front ends did not end in time and are killed", len(self._front_ends))

    async def _kill_front_ends(self) -> None:
        """End those that are left, before what is needed when one ends is closed."""
        self._is_ending = True
        for front_end in self._front_ends.values():
            front_end.signal(signal.SIGKILL)
        await self._wait_for_front_ends(KILL_TIMEOUT_S)
        for front_end in self._front_ends.values():
            front_end.forget()

    async def _wait_for_front_ends(self, timeout_s: float) -> bool:
        """True: none is left."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._front_ends:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _on_signal(self, number: int) -> None:
        if self._stop.is_set():
            os._exit(128 + number)  # children end with this process
        self._signal = number
        self._stop.set()


def _share_limits(config: EngineConfig, num_front_ends: int) -> EngineConfig:
    """The configuration of each front end: connections are dealt out, since the kernel chooses who accepts one."""
    most = ceil_div(config.server.max_connections, num_front_ends)
    return replace(config, server=replace(config.server, max_connections=most))
