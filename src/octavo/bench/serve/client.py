"""The HTTP/1.1 client of the load generator: one connection per open request, kept for the next.

Owns: connections, TLS, sending, time limits.   Does not own: framing (http_response.py), what the bytes mean (sinks).
Reads are handled in the protocol's callback, without a task switch: a chunk costs one callback of the event loop.
Invariant: a connection is either idle in the pool or serves one exchange; one that is not clean is closed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast
from urllib.parse import urlsplit

from octavo.base.clock import Clock
from octavo.base.errors import ConfigError, ConfigProblem, OctavoError
from octavo.bench.serve.http_response import ResponseError, ResponseReader

CONNECT_TIMEOUT_S = 60.0
READ_BYTES = 16 * 1024


class ExchangeError(OctavoError):
    """A request got no whole answer; the message says why."""


class BodySink(Protocol):
    """Takes the body of a response as it arrives. May raise OctavoError to end the exchange."""

    def on_body(self, status: int, body: bytes, now_s: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    path_prefix: str = ""
    """Path of the base URL; endpoints are appended."""
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with each request."""

    @classmethod
    def from_url(cls, url: str, *, headers: Mapping[str, str], insecure: bool = False) -> Target:
        """Raises ConfigError for what is no http or https URL, and for headers that cannot be sent."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ConfigError([ConfigProblem("--base-url", url, "must be like http://127.0.0.1:8000")])
        for name, value in headers.items():
            if not name or not (name + value).isprintable() or not (name + value).isascii() or set(name) & set(": "):
                raise ConfigError([ConfigProblem("--header", f"{name}={value}", "must be NAME=VALUE in ASCII")])
        tls = _tls_context(insecure) if parts.scheme == "https" else None
        return cls(
            host=parts.hostname,
            port=port or (443 if tls else 80),
            path_prefix=parts.path.rstrip("/"),
            tls=tls,
            headers=headers,
        )

    def render(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The bytes of a request. `headers` win over the target's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        merged = {"Host": f"{host}:{self.port}", "Accept": "*/*"} | dict(self.headers) | dict(headers)
        if body:
            merged["Content-Type"] = "application/json"
        if body or method == "POST":
            merged["Content-Length"] = str(len(body))
        lines = [f"{method} {self.path_prefix}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in merged.items())]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + body


class HttpClient:
    """Sends requests to one target. Not safe across event loops."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self.target = target
        self._clock = clock
        self._idle: list[_Connection] = []

    async def exchange(self, request: bytes, sink: BodySink, *, timeout_s: float) -> ResponseReader:
        """Send `request` (Target.render), pass the body to `sink`; the response's head. Raises ExchangeError.

        A kept connection that the server has closed meanwhile, before any byte of an answer, is replaced once.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    connection, is_kept = await self._connect()
                    try:
                        return await self._exchange_on(connection, request, sink)
                    except _ClosedUnanswered as error:
                        if not is_kept:
                            raise ExchangeError("the server closed the connection without an answer") from error
        except TimeoutError:
            raise ExchangeError(f"no whole answer within {timeout_s:g} s") from None

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    async def _connect(self) -> tuple[_Connection, bool]:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection, True
        target = self.target
        name = target.host if target.tls else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._clock), target.host, target.port, ssl=target.tls, server_hostname=name
                )
        except TimeoutError:
            raise ExchangeError(
                f"{target.host}:{target.port} accepted no connection in {CONNECT_TIMEOUT_S:g} s"
            ) from None
        except OSError as error:
            raise ExchangeError(f"cannot connect to {target.host}:{target.port}: {error.strerror or error}") from error
        return connection, False

    async def _exchange_on(self, connection: _Connection, request: bytes, sink: BodySink) -> ResponseReader:
        try:
            reader = await connection.exchange(request, sink)
        except BaseException:
            connection.abort()
            raise
        if reader.keeps_connection and connection.is_open:
            self._idle.append(connection)
        else:
            connection.abort()
        return reader


class _ClosedUnanswered(Exception):  # noqa: N818 - told apart from errors: it may be retried
    """The connection was closed before the first byte of an answer."""


class _Connection(asyncio.BufferedProtocol):
    # Reads go into a buffer of its own: asyncio's other way allocates 256 KiB for each, whatever arrives.
    def __init__(self, clock: Clock) -> None:
        self.is_open = False
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._sink: BodySink | None = None
        self._done: asyncio.Future[ResponseReader] | None = None
        self._buffer = memoryview(bytearray(READ_BYTES))

    def exchange(self, request: bytes, sink: BodySink) -> asyncio.Future[ResponseReader]:
        assert self._transport is not None
        assert self._reader is None, "one exchange at a time"
        self._reader, self._sink = ResponseReader(), sink
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._done

    def abort(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        now_s = self._clock.now_s()
        reader = self._reader
        if reader is None or self._sink is None:
            # Nothing was asked: whatever this answers, the connection is of no more use.
            self.abort()
            return
        try:
            body = reader.feed(bytes(self._buffer[:nbytes]))
            if body:
                self._sink.on_body(reader.status, body, now_s)
        except OctavoError as error:
            self._fail(ExchangeError(str(error)))
            self.abort()
            return
        if reader.is_complete:
            self._succeed(reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        reader = self._reader
        if reader is None:
            return
        if not reader.num_bytes:
            self._fail(_ClosedUnanswered())
            return
        try:
            reader.finish()
        except ResponseError as error:
            self._fail(ExchangeError(str(exc or error)))
        else:
            self._succeed(reader)

    def _succeed(self, reader: ResponseReader) -> None:
        done = self._forget()
        if done is not None and not done.done():
            done.set_result(reader)

    def _fail(self, error: Exception) -> None:
        done = self._forget()
        if done is not None and not done.done():
            done.set_exception(error)

    def _forget(self) -> asyncio.Future[ResponseReader] | None:
        done, self._reader, self._sink, self._done = self._done, None, None, None
        return done


def _tls_context(insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
