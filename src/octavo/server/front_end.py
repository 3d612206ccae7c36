"""The process of one front end of several, begun by engine/process/entry.py with a descriptor of a FrontEndStart.

Owns: the order of its life, its signals, and its end when the launcher is gone.
Does not own: when it is started (launcher.py), serving (server.py).
Ctrl-C goes to the whole group and is left to the launcher, which sends TERM. The kernel kills it with its launcher.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import sys
from typing import Any

import msgspec

from octavo.base.errors import EngineDeadError, OctavoError
from octavo.base.log import get_logger, setup_logging
from octavo.base.memory import return_large_blocks_at_once
from octavo.config.schema import EngineConfig
from octavo.obs.catalogue import FRONT_END_METRICS
from octavo.obs.counters import CounterLayout, Counters
from octavo.server.listener import load_tls
from octavo.server.server import EXIT_ENGINE_DEAD, Server, Sockets, engine_options, run_loop, set_http_log_level
from octavo.server.telemetry import Telemetry

logger = get_logger("octavo.server.front_end")  # this module runs as __main__

MAX_START_BYTES = 1 << 20


class FrontEndStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a front end is told. The descriptors are inherited."""

    config: msgspec.Raw
    """An EngineConfig, encoded."""
    client_idx: int
    num_front_ends: int
    url: str
    listen_fd: int
    channel_fd: int
    """Its end of the channel to the launcher."""
    counters_fd: int
    ready_fd: int
    """A byte is written here when it serves."""
    admin_fd: int | None = None


def main(start_fd: int, launcher_pid: int) -> int:
    """Returns the exit code: 0 after TERM, EXIT_ENGINE_DEAD when the engine was given up, else 1."""
    if os.getppid() != launcher_pid:
        return 1
    faulthandler.enable()
    return_large_blocks_at_once()
    with os.fdopen(start_fd, "rb") as file:
        start = msgspec.msgpack.decode(file.read(MAX_START_BYTES), type=FrontEndStart)
    config = msgspec.msgpack.decode(start.config, type=EngineConfig)
    setup_logging(config.observability.log_level, config.observability.log_format)
    set_http_log_level(config.server.uvicorn_log_level)
    logging.getLogger("octavo.engine.front.dispatch").setLevel(logging.WARNING)  # the launcher says it once for all
    try:
        return run_loop(_make_server(config, start).run(on_ready=lambda: _tell_ready(start.ready_fd)))
    except EngineDeadError as error:
        logger.error("front end %d: %s", start.client_idx, error)
        return EXIT_ENGINE_DEAD
    except OctavoError as error:
        logger.error("front end %d: %s", start.client_idx, error)
        return 1


def _make_server(config: EngineConfig, start: FrontEndStart) -> Server:
    counters = Counters.attach(
        CounterLayout(FRONT_END_METRICS), start.counters_fd, num_pages=start.num_front_ends, page=start.client_idx
    )
    os.close(start.counters_fd)
    options = config.server
    tls = load_tls(options.ssl_certfile, options.ssl_keyfile) if options.ssl_certfile and options.ssl_keyfile else None
    sockets = Sockets(
        public=_adopt(start.listen_fd),
        url=start.url,
        tls=tls,
        admin=_adopt(start.admin_fd) if start.admin_fd is not None else None,
    )
    return Server(
        config,
        sockets,
        Telemetry(config, counters),
        engine_options(config, client_idx=start.client_idx, launcher_fd=start.channel_fd),
        signals=(signal.SIGTERM,),
    )


def _adopt(fd: int) -> socket.socket:
    sock = socket.socket(fileno=fd)
    sock.setblocking(False)
    return sock


def _tell_ready(fd: int) -> Any:
    os.write(fd, b"r")
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
