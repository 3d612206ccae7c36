"""An HTTP/1.1 connection: bytes to requests and back, with a bound on everything a client can do.

Owns: parsing (llhttp through httptools), sizes, timeouts, the order of pipelined requests, closing.
Does not own: answers (cycle.py and the application), the set of connections (listener.py).
Invariants: one request runs at a time, later ones of the same connection wait; a client that goes away is noticed while
its request runs, because reading never stops for long; every state has a timer or a task that ends it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import httptools

from octavo.base.log import get_logger
from octavo.server.cycle import ClientDisconnectedError, Cycle, Message, Scope
from octavo.server.errors import ApiError
from octavo.server.http_limits import HttpLimits
from octavo.server.request_head import RequestHead, not_http

logger = get_logger(__name__)

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_MAX_UNREAD_BYTES = 1 << 16
_MAX_PIPELINED = 16
_LINGER_S = 1.0


class Connections:
    """All connections of a server, and what they share."""

    def __init__(self, app: Application, limits: HttpLimits, date: Callable[[], bytes]) -> None:
        self.app = app
        self.limits = limits
        self.date = date
        self.is_closing = False
        self.active: set[HttpConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.changed = asyncio.Event()
        """Set whenever one ends."""


class HttpConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._base_scope: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._queue: deque[Cycle] = deque()  # the first one runs
        self._reading: Cycle | None = None
        self._refusal: ApiError | None = None
        self._is_deaf = False  # nothing more is read from the client
        self._is_reading_paused = False
        self._head = RequestHead(0.0)
        self._is_in_message = False  # a request is arriving, `_head` is its

    # ---- asyncio ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MAX_UNREAD_BYTES)
        peer, own = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        self._base_scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "client": peer[:2] if isinstance(peer, tuple) else None,
            "server": own[:2] if isinstance(own, tuple) else None,
            "root_path": "",
        }
        self._shared.active.add(self)
        if len(self._shared.active) > self._limits.max_connections:
            self._refuse(ApiError(503, "unavailable", "Too many connections.", headers={"retry-after": "1"}))
            return
        self._arm(self._limits.read_timeout_s, self._on_read_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.active.discard(self)
        self._shared.changed.set()
        self._disarm()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        for cycle in self._queue:
            cycle.disconnect()
        self._is_deaf = True
        self._writable.set()

    def eof_received(self) -> None:
        """A client that has stopped sending is taken for gone: asyncio closes the transport."""

    def pause_writing(self) -> None:
        self._writable.clear()
        self._stall_timer = self._loop.call_later(self._limits.write_timeout_s, self._transport.abort)

    def resume_writing(self) -> None:
        self._writable.set()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if not self._is_in_message:
            self._begin_message()
        if self._reading is None:
            self._head.num_received_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            if self._refusal is None:
                self._refusal = not_http(error)
        if self._refusal is None and self._reading is None and self._is_in_message:
            self._try(self._head.check_growth, self._limits)
        if self._refusal is not None:
            self._refuse(self._refusal)

    def _try(self, check: Callable[..., None], *arguments: object) -> None:
        """A check whose error refuses the request; raised inside the parser's callbacks it would be lost."""
        try:
            check(*arguments)
        except ApiError as error:
            self._refusal = self._refusal or error

    def _feed(self, data: bytes) -> None:
        """Parse. An offer to upgrade is not taken: the request is read again without it, as RFC 9110 7.8 has it.

        Clients of Java offer h2c with every request.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            method, head = self._parser.get_method(), self._head
            if method == b"CONNECT":
                self._refusal = not_http("CONNECT")
                return
            self._parser = httptools.HttpRequestParser(self)
            self._begin_message()
            self._parser.feed_data(head.without_upgrade(method) + rest)

    # ---- httptools --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._is_in_message:  # a pipelined request: its first bytes came along with the one before
            self._begin_message()

    def on_url(self, url: bytes) -> None:
        self._head.add_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.add_header(name, value, self._limits)

    def on_headers_complete(self) -> None:
        if self._refusal is not None or self._parser.should_upgrade():
            return
        version = self._parser.get_http_version()
        try:
            scope = self._head.make_scope(
                self._base_scope, method=self._parser.get_method(), http_version=version, limits=self._limits
            )
        except ApiError as error:
            self._refusal = error
            return
        keep_alive = version != "1.0" and bool(self._parser.should_keep_alive())
        self._reading = Cycle(self, scope, keep_alive=keep_alive, expects_continue=self._head.expects_continue)
        self._queue.append(self._reading)
        if len(self._queue) == 1:
            self._start(self._reading)

    def on_chunk_header(self) -> None:
        self._try(self._head.add_chunk, self._limits)

    def on_body(self, data: bytes) -> None:
        cycle = self._reading
        if cycle is None or cycle.is_complete or self._refusal is not None:
            return
        self._head.num_body_bytes += len(data)
        cycle.add_body(data)
        if len(cycle.body) > _MAX_UNREAD_BYTES:
            if cycle is self._queue[0]:
                self._pause_reading()
            else:
                self._transport.abort()  # a large body behind a request that still runs

    def on_message_complete(self) -> None:
        if self._refusal is not None or self._parser.should_upgrade():
            return
        cycle, self._reading = self._reading, None
        self._is_in_message = False
        assert cycle is not None
        cycle.end_body()
        self._disarm()
        if len(self._queue) > _MAX_PIPELINED:
            self._transport.abort()

    # ---- the cycles' side (Wire) ------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Queue bytes for the client."""
        self._transport.write(data)

    async def wait_writable(self) -> None:
        """Return at once, or when the client has taken most of what it was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    def want_body(self) -> None:
        """The application took what there was of the body."""
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    def date(self) -> bytes:
        """For the Date header."""
        return self._shared.date()

    @property
    def is_closing(self) -> bool:
        """True: no further request is taken on any connection."""
        return self._shared.is_closing

    def finish(self, cycle: Cycle) -> None:
        """An answer is complete: go on with the next request, wait for one, or close."""
        self._queue.popleft()
        if self._transport.is_closing():
            return
        if not cycle.keep_alive:
            self._close(lingers=cycle.more_body)
        elif self._queue:
            self._start(self._queue[0])
        elif not self._is_in_message:
            self.want_body()
            self._arm(self._limits.keep_alive_timeout_s, self._on_read_timeout)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def close_if_idle(self) -> None:
        """For a server that stops: what runs is finished, then the connection closes."""
        if not self._queue:
            self._close(lingers=False)

    def abort(self) -> None:
        """End it now."""
        self._transport.abort()

    def _begin_message(self) -> None:
        self._is_in_message = True
        self._head = RequestHead(self._loop.time())
        self._arm(self._limits.read_deadline_s(0), self._on_read_timeout)

    def _start(self, cycle: Cycle) -> None:
        task = self._loop.create_task(self._run(cycle))
        self._shared.tasks.add(task)
        task.add_done_callback(self._shared.tasks.discard)

    async def _run(self, cycle: Cycle) -> None:
        try:
            await self._shared.app(cycle.scope, cycle.receive, cycle.send)
        except ClientDisconnectedError:
            pass
        except Exception:
            logger.exception("the application failed")
        finally:
            if not (cycle.is_complete or cycle.is_disconnected or self._transport.is_closing()):
                self._transport.abort()  # an answer that was cut must not look like a whole one

    def _refuse(self, error: ApiError) -> None:
        """Answer what cannot be read any further and close; answers to requests before it are finished first."""
        self._is_deaf = True
        self._disarm()
        logger.debug("refused: %s", error)
        faulty, self._reading = self._reading, None
        if faulty is None or faulty is not self._queue[0]:
            if faulty is not None:
                self._queue.remove(faulty)
            if self._queue:
                self._queue[-1].keep_alive = False
                return
        elif faulty.is_started:
            self._transport.abort()
            return
        else:
            faulty.disconnect()
            self._queue.clear()
        self._transport.write(_render_refusal(error, self.date()))
        self._close(lingers=True)

    def _close(self, *, lingers: bool) -> None:
        """Close once everything is sent; with `lingers` read on for a moment, so that the answer is not lost."""
        self._is_deaf = True
        if lingers:
            self.want_body()
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._arm(_LINGER_S, lambda: self._close(lingers=False))
            return
        self._transport.close()
        self._arm(self._limits.write_timeout_s, self._transport.abort)

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _arm(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._disarm()
        self._timer = self._loop.call_later(delay_s, callback)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_read_timeout(self) -> None:
        if not self._is_in_message:
            self._close(lingers=False)
            return
        head = self._head
        left_s = head.begin_s + self._limits.read_deadline_s(head.num_body_bytes) - self._loop.time()
        if left_s > 0:
            self._arm(left_s, self._on_read_timeout)
            return
        self._refuse(ApiError(408, "request_timeout", "The request took too long to arrive."))


def _render_refusal(error: ApiError, date: bytes) -> bytes:
    body = error.body()
    headers = {"content-type": "application/json", "content-length": len(body), **error.headers, "connection": "close"}
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", f"date: {date.decode()}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
