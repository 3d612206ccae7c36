"""The life of a server: bind, listen, load, serve, drain, end.

Owns: the order of these, signals, what is printed at the start, the exit code.
Does not own: the engine (AsyncLLM), requests (app.py), connections (listener.py).
The port is taken before anything is loaded, and answers 503 until the model is ready. SIGTERM and SIGINT drain: not
ready any more, nothing new, what runs is finished within --shutdown-timeout. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from octavo import __version__
from octavo.base.errors import EngineDeadError
from octavo.base.interpreter import share_finely
from octavo.base.log import get_logger
from octavo.base.memory import return_large_blocks_at_once
from octavo.config.option import AUTO
from octavo.config.schema import EngineConfig, all_options
from octavo.config.server_options import HttpLogLevel
from octavo.engine.front.async_llm import AsyncLLM
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.process.spawned import SpawnedEngine
from octavo.server.admin import AdminApp
from octavo.server.app import App
from octavo.server.http_limits import HttpLimits
from octavo.server.listener import HttpServer, bind_tcp, bind_unix, load_tls
from octavo.server.service import Service
from octavo.server.telemetry import Telemetry
from octavo.server.turn_formats import check_parser_names

logger = get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
FLUSH_TIMEOUT_S = 5.0
EXIT_ENGINE_DEAD = 3
"""Of a front end of several: the engine was given up, so that another front end would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """What was bound before anything was loaded."""

    public: socket.socket
    url: str
    tls: ssl.SSLContext | None
    admin: socket.socket | None


def bind(config: EngineConfig) -> Sockets:
    """Take the addresses that the options name. Raises ConfigError."""
    options = config.server
    tls = None
    if options.ssl_certfile is not None and options.ssl_keyfile is not None:
        tls = load_tls(options.ssl_certfile, options.ssl_keyfile)
    if options.uds is not None:
        public, url = bind_unix(options.uds, mode=0o666), f"unix:{options.uds}"
    else:
        public = bind_tcp(options.host, options.port)
        host = f"[{options.host}]" if ":" in options.host else options.host
        url = f"{'https' if tls else 'http'}://{host}:{public.getsockname()[1]}"
    admin = None
    if options.admin_uds is not None:
        admin = bind_unix(options.admin_uds, mode=0o600, flag="--admin-uds")
    elif options.admin_port is not None:
        admin = bind_tcp("127.0.0.1", options.admin_port)
    return Sockets(public=public, url=url, tls=tls, admin=admin)


def serve(config: EngineConfig, spawned: SpawnedEngine | None = None) -> int:
    """Serve until a signal; the exit code. Raises what ends a start, and EngineDeadError.

    spawned: a process for the engine that was started already.
    """
    print(f"Octavo {__version__}, model {config.model.model}", file=sys.stderr, flush=True)
    logger.info("non-default args: %s", non_default(config))
    check_parser_names(config.answers)
    if not config.server.in_process:  # else an engine's arrays are here too
        return_large_blocks_at_once()
    sockets = bind(config)
    try:
        if config.server.api_server_count > 1:
            from octavo.server.launcher import Launcher

            return run_loop(Launcher(config, sockets, spawned=spawned).run())
        return run_loop(Server(config, sockets, Telemetry(config), engine_options(config, spawned=spawned)).run())
    finally:
        for path in (config.server.uds, config.server.admin_uds):
            if path is not None and os.path.exists(path):
                os.unlink(path)


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop until it returns."""
    import uvloop

    share_finely()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def non_default(config: EngineConfig) -> dict[str, object]:
    """Options that were given another value than their default; secrets only by name."""
    shown: dict[str, object] = {}
    for name, option in all_options().items():
        value = getattr(getattr(config, option.group), name)
        if value != option.default and value not in (None, (), {}, AUTO):
            shown[name] = "***" if option.declaration.secret else value
    return shown


class Server:
    """One front end: alone with its engine, or one of several that share one."""

    def __init__(
        self,
        config: EngineConfig,
        sockets: Sockets,
        telemetry: Telemetry,
        options: AsyncOptions,
        *,
        signals: Sequence[signal.Signals] = SIGNALS,
    ) -> None:
        self._config = config
        self._sockets = sockets
        self._telemetry = telemetry
        self._signals = signals
        self._app = App(config.server, self._telemetry)
        self._http = HttpServer(self._app, HttpLimits.of(config.server), self._app.note_refusal)
        self._admin = HttpServer(
            AdminApp(lambda: self._app.service, config.server.admin_api_key), HttpLimits.of(config.server)
        )
        self._engine = AsyncLLM(config, options, meter=self._telemetry.meter)
        self._is_alone = options.launcher_fd is None
        self._stop = asyncio.Event()
        self._signal: int | None = None

    async def run(self, on_ready: Callable[[], None] | None = None) -> int:
        """From listening to the end; on_ready is called when it serves. Raises what the engine's start raises.

        Returns the exit code: 0 after a drain, 128 + the signal's number where one came before the model was loaded.
        """
        self._take_signals()
        await self._http.listen(self._sockets.public, self._sockets.tls)
        if self._sockets.admin is not None:
            await self._admin.listen(self._sockets.admin)
        if self._is_alone:
            logger.info("listening on %s; requests get 503 until the model is loaded", self._sockets.url)
        try:
            is_loaded = await first_of(self._engine.ready(), self._stop.wait()) == 0
            if is_loaded:
                await self._serve(on_ready)
        finally:
            await self._end()
        return 0 if is_loaded else self._note_interrupted()

    async def _serve(self, on_ready: Callable[[], None] | None) -> None:
        """Until a signal has come and what runs is finished."""
        self._begin_serving()
        if on_ready is not None:
            on_ready()
        if await first_of(self._stop.wait(), self._engine.wait_dead()) == 1:
            raise EngineDeadError(f"the engine is dead and was given up: {self._engine.dead_error}")
        await self._drain()

    def _note_interrupted(self) -> int:
        """A signal came before the model was loaded: nothing was served, so this was no success. The exit code."""
        assert self._signal is not None
        if self._is_alone:
            logger.error("%s", interrupted_text(self._signal))
        return 128 + self._signal

    def _begin_serving(self) -> None:
        telemetry = self._telemetry
        service = Service(
            self._engine, self._config.server, self._config.answers, telemetry.meter.load, telemetry.tracer
        )
        self._telemetry.attach(self._engine)
        self._app.service = service
        if not self._is_alone:
            return
        logger.info("routes: %s", "; ".join(f"{path} ({methods})" for path, methods in self._app.routes))
        logger.info("serving %s on %s", ", ".join(service.model_names), self._sockets.url)
        logger.info("Application startup complete.")

    async def _drain(self) -> None:
        timeout_s = self._config.server.shutdown_timeout
        logger.info("stopping: %d requests are finished first, for %g s", self._engine.num_live_requests, timeout_s)
        self._app.begin_drain()
        self._http.begin_drain()
        if not await self._engine.drain(timeout_s):
            logger.warning("the time to finish was up; what was left is aborted")

    async def _end(self) -> None:
        self._app.begin_drain()
        await self._engine.shutdown()
        await asyncio.gather(self._http.close(FLUSH_TIMEOUT_S), self._admin.close())
        self._telemetry.shutdown()

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        if self._stop.is_set():
            os._exit(128 + number)  # children end with this process
        self._signal = number
        self._stop.set()


def interrupted_text(number: int) -> str:
    """The last line of a start that a signal ended."""
    return f"stopped by {signal.Signals(number).name} while the model was loading: nothing was served"


def engine_options(
    config: EngineConfig,
    *,
    client_idx: int = 0,
    launcher_fd: int | None = None,
    spawned: SpawnedEngine | None = None,
) -> AsyncOptions:
    """What concerns the engine's use among the server's options."""
    server = config.server
    return AsyncOptions(
        in_process=server.in_process,
        replay=server.replay,
        stall_timeout_s=server.stall_timeout_s,
        trust_request_chat_template=server.trust_request_chat_template,
        spawned_engine=spawned,
        client_idx=client_idx,
        launcher_fd=launcher_fd,
    )


def set_http_log_level(level: HttpLogLevel) -> None:
    """--uvicorn-log-level."""
    logging.getLogger("octavo.server").setLevel("DEBUG" if level == "trace" else level.upper())


async def first_of(*waits: Awaitable[Any]) -> int:
    """Index of the one that ended first; the others are cancelled. Raises what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        index = next(i for i, task in enumerate(tasks) if task.done())
        tasks[index].result()
        return index
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
