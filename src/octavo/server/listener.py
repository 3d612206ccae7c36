"""The HTTP server: sockets, connections, and how it stops.

Owns: binding, TLS, accepting, the Date header, draining connections.   Does not own: one connection (connection.py).
Nothing here ticks: an idle server runs no code.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import stat
import time
from email.utils import formatdate
from pathlib import Path

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.server.connection import Application, Connections, HttpConnection, RefusalListener
from octavo.server.http_limits import HttpLimits

_BACKLOG = 2048


class DateClock:
    """The Date header's value, made once a second at most."""

    def __init__(self) -> None:
        self._second = 0
        self._text = b""

    def __call__(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second, self._text = second, formatdate(second, usegmt=True).encode()
        return self._text


class HttpServer:
    """Serves one application on any number of sockets."""

    def __init__(self, app: Application, limits: HttpLimits, on_refusal: RefusalListener | None = None) -> None:
        self._shared = Connections(app, limits, DateClock(), on_refusal)
        self._limits = limits
        self._servers: list[asyncio.AbstractServer] = []

    async def listen(self, sock: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections on a bound socket."""
        loop = asyncio.get_running_loop()
        handshake_s = self._limits.read_timeout_s if tls else None
        if sock.family == socket.AF_UNIX:
            server: asyncio.AbstractServer = await loop.create_unix_server(self._connect, sock=sock, backlog=_BACKLOG)
        else:
            server = await loop.create_server(
                self._connect, sock=sock, ssl=tls, backlog=_BACKLOG, ssl_handshake_timeout=handshake_s
            )
        self._servers.append(server)

    def _connect(self) -> HttpConnection:
        return HttpConnection(self._shared)

    @property
    def num_connections(self) -> int:
        """Open ones."""
        return len(self._shared.active)

    def begin_drain(self) -> None:
        """From now on every answer ends its connection, and idle connections are closed. Still accepts, to say so."""
        self._shared.is_closing = True
        for connection in list(self._shared.active):
            connection.close_if_idle()

    async def close(self, timeout_s: float = 1.0) -> None:
        """Stop accepting; give answers under way so long to be sent, then cut them."""
        self.begin_drain()
        for server in self._servers:
            server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._shared.active:
                    self._shared.changed.clear()
                    await self._shared.changed.wait()
        for connection in list(self._shared.active):
            connection.abort()
        if self._shared.tasks:
            for task in list(self._shared.tasks):
                task.cancel()
            await asyncio.wait(list(self._shared.tasks), timeout=timeout_s)


def bind_tcp(host: str, port: int) -> socket.socket:
    """A listening address, taken before anything is loaded. Raises ConfigError saying why it cannot be had."""
    sock = None
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        if sock is not None:
            sock.close()
        name, value = ("host", host) if isinstance(error, socket.gaierror) else ("port", port)
        reason = f"cannot listen on {host}:{port}: {error.strerror}; choose another --host or --port"
        raise ConfigError([ConfigProblem(f"--{name}", value, reason)]) from None
    sock.setblocking(False)
    return sock


def bind_unix(path: str, *, mode: int, flag: str = "--uds") -> socket.socket:
    """A unix socket with these permissions; a stale one of that name is replaced. Raises ConfigError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
            _check_stale(path)
            Path(path).unlink()
        before = os.umask(0o777 & ~mode)
        try:
            sock.bind(path)
        finally:
            os.umask(before)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        reason = f"cannot listen there: {error.strerror or error}; choose another path"
        raise ConfigError([ConfigProblem(flag, path, reason)]) from None
    sock.setblocking(False)
    return sock


def _check_stale(path: str) -> None:
    """Raise OSError when somebody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
        raise OSError("another server listens there")


def load_tls(certfile: str, keyfile: str) -> ssl.SSLContext:
    """TLS 1.2 and later with this certificate. Raises ConfigError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certfile, keyfile)
    except (OSError, ssl.SSLError) as error:
        reason = f"cannot be used: {error.strerror or error}"
        raise ConfigError([ConfigProblem("--ssl-certfile", certfile, reason)]) from None
    return context
