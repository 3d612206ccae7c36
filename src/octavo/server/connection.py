"""An HTTP/1.1 connection: bytes to requests and back, with a bound on everything a client can do.

Owns: timeouts, the order of pipelined requests, what is said to bytes that are no request, closing.
Does not own: parsing (request_reader.py), answers (cycle.py and the application), the set of connections (listener.py).
Invariants: one request runs at a time, later ones of the same connection wait; a client that goes away is noticed while
its request runs, because reading never stops for long; every state has a timer or a task that ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from octavo.base.log import get_logger
from octavo.server.cycle import ClientDisconnectedError, Cycle, Message, Scope, render_refusal
from octavo.server.errors import ApiError
from octavo.server.http_limits import HttpLimits
from octavo.server.request_reader import RequestReader

logger = get_logger(__name__)

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
RefusalListener = Callable[[ApiError, str, float], None]
"""Told of what was refused before the application saw it: the answer, the target as far as it is known, seconds."""

_MAX_UNREAD_BYTES = 1 << 16
_MAX_PIPELINED = 16
_LINGER_S = 1.0


class Connections:
    """All connections of a server, and what they share."""

    def __init__(
        self,
        app: Application,
        limits: HttpLimits,
        date: Callable[[], bytes],
        on_refusal: RefusalListener | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.date = date
        self.on_refusal = on_refusal
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
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._reader = RequestReader(self, shared.limits, {})
        self._timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._queue: deque[Cycle] = deque()  # the first one runs
        self._reading: Cycle | None = None
        self._is_deaf = False  # nothing more is read from the client
        self._is_reading_paused = False

    # ---- asyncio ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MAX_UNREAD_BYTES)
        peer, own = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        base_scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "client": peer[:2] if isinstance(peer, tuple) else None,
            "server": own[:2] if isinstance(own, tuple) else None,
            "root_path": "",
        }
        self._reader = RequestReader(self, self._limits, base_scope)
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
        fault = self._reader.feed(data)
        if fault is not None:
            self._refuse(fault)

    # ---- requests as they arrive (RequestSink) ----------------------------------------------------------------------

    def begin_request(self) -> None:
        """See RequestSink."""
        self._arm(self._limits.read_deadline_s(0), self._on_read_timeout)

    def take_head(self, scope: Scope, *, keep_alive: bool, expects_continue: bool) -> None:
        """A request can start; its body is still to come."""
        self._reading = Cycle(self, scope, keep_alive=keep_alive, expects_continue=expects_continue)
        self._queue.append(self._reading)
        if len(self._queue) == 1:
            self._start(self._reading)

    def take_body(self, data: bytes) -> None:
        """More of the body."""
        cycle = self._reading
        if cycle is None or cycle.is_complete:
            return
        cycle.add_body(data)
        if len(cycle.body) > _MAX_UNREAD_BYTES:
            if cycle is self._queue[0]:
                self._pause_reading()
            else:
                self._transport.abort()  # a large body behind a request that still runs

    def end_request(self) -> None:
        """The request has arrived."""
        cycle, self._reading = self._reading, None
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
        elif not self._reader.is_in_request:
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

    def _start(self, cycle: Cycle) -> None:
        task = self._loop.create_task(self._run(cycle))
        self._shared.tasks.add(task)
        task.add_done_callback(self._shared.tasks.discard)

    async def _run(self, cycle: Cycle) -> None:
        try:
            await self._shared.app(cycle.scope, cycle.receive, cycle.send)
        except ClientDisconnectedError:
            pass
        except ApiError as error:
            if not cycle.is_started:  # an application that leaves it to us to say so
                self._queue.clear()
                self._answer_refusal(error)
        except Exception:
            logger.exception("the application failed")
        finally:
            if self._queue and self._queue[0] is cycle and not (cycle.is_disconnected or self._transport.is_closing()):
                self._transport.abort()  # an answer that was cut must not look like a whole one

    def _refuse(self, fault: ApiError) -> None:
        """Nothing more can be read. A request that runs is told; else, behind the answers to those before, the client.

        The request's application knows its method and target, and counts it like any other.
        """
        self._is_deaf = True
        self._disarm()
        faulty, self._reading = self._reading, None
        if faulty is not None and faulty is self._queue[0]:
            if faulty.is_started:
                self._transport.abort()
            else:
                faulty.fail(fault)
            return
        if faulty is not None:
            self._queue.remove(faulty)
        if self._queue:
            self._note_refusal(fault)
            self._queue[-1].keep_alive = False
        else:
            self._answer_refusal(fault)

    def _answer_refusal(self, error: ApiError) -> None:
        self._note_refusal(error)
        self._transport.write(render_refusal(error, self.date()))
        self._close(lingers=True)

    def _note_refusal(self, error: ApiError) -> None:
        if self._shared.on_refusal is not None:
            head = self._reader.head
            seconds = time.monotonic() - head.begin_s if head.begin_s else 0.0
            self._shared.on_refusal(error, head.url.decode("latin-1"), seconds)

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
        if not self._reader.is_in_request:
            self._close(lingers=False)
            return
        head = self._reader.head
        left_s = head.begin_s + self._limits.read_deadline_s(head.num_body_bytes) - time.monotonic()
        if left_s > 0:
            self._arm(left_s, self._on_read_timeout)
            return
        self._refuse(ApiError(408, "request_timeout", "The request took too long to arrive."))
