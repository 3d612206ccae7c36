"""One request and its answer on a connection: ASGI's `receive` and `send`.

Owns: framing of the answer (length, chunks or close), whether the connection can be used again.
Does not own: parsing and timeouts (connection.py), what is answered (the application).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol

from octavo.server.errors import ApiError

Scope = MutableMapping[str, Any]
Message = Mapping[str, Any]

_NO_BODY = frozenset({204, 304})
_PHRASES = {s.value: s.phrase for s in HTTPStatus} | {529: "Overloaded"}
"""529 is no status of HTTP's own; Anthropic's API has it."""
_STATUS_LINES = {status: f"HTTP/1.1 {status} {phrase}\r\n".encode() for status, phrase in _PHRASES.items()}


class ClientDisconnectedError(OSError):
    """The client is gone; nothing can be sent any more."""


class Wire(Protocol):
    """What a cycle needs of its connection."""

    def write(self, data: bytes) -> None: ...
    async def wait_writable(self) -> None: ...
    def want_body(self) -> None: ...
    def finish(self, cycle: Cycle) -> None: ...
    def date(self) -> bytes: ...
    @property
    def is_closing(self) -> bool: ...


class Cycle:
    """States: the request arrives (`more_body`), the answer has started, it is complete, the client is gone."""

    def __init__(self, wire: Wire, scope: Scope, *, keep_alive: bool, expects_continue: bool) -> None:
        self.scope = scope
        self.body = bytearray()
        self.more_body = True
        self.is_disconnected = False
        self.is_started = False
        self.is_complete = False
        self.keep_alive = keep_alive
        self._fault: Exception | None = None
        self._wire = wire
        self._expects_continue = expects_continue
        self._is_body_delivered = False
        self._changed = asyncio.Event()
        self._head: bytes | None = None
        self._is_chunked = False
        self._has_length = False
        self._status = 0

    # ---- the connection's side --------------------------------------------------------------------------------------

    def add_body(self, data: bytes) -> None:
        """More of the request's body."""
        self.body += data
        self._changed.set()

    def end_body(self) -> None:
        """The request is complete."""
        self.more_body = False
        self._changed.set()

    def disconnect(self) -> None:
        """The client is gone."""
        self.is_disconnected = True
        self._changed.set()

    def fail(self, fault: Exception) -> None:
        """The rest of the request will not come: the application's next `receive` raises this."""
        self._fault = fault
        self._changed.set()

    # ---- the application's side -------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next part of the body; after the last, the end of the connection or of the answer.

        Raises what the connection found wrong with the request.
        """
        if self._expects_continue and not self.is_started:
            self._expects_continue = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self.is_disconnected or self.is_complete):
            if not self._is_body_delivered and (self.body or not self.more_body):
                body, self.body = bytes(self.body), bytearray()
                self._is_body_delivered = not self.more_body
                self._wire.want_body()
                return {"type": "http.request", "body": body, "more_body": self.more_body}
            if self._fault is not None:
                raise self._fault
            self._changed.clear()
            await self._changed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Start or continue the answer; waits while the client is slow. Raises ClientDisconnectedError."""
        if self.is_disconnected:
            raise ClientDisconnectedError
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._head = self._render_head(message.get("headers", ()))
            self.is_started = True
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        self._write(body, more)
        if not more:
            self.is_complete = True
            self._changed.set()
            self._wire.finish(self)
        else:
            await self._wire.wait_writable()

    def _write(self, body: bytes, more: bool) -> None:
        has_no_body = self._status in _NO_BODY or self.scope["method"] == "HEAD"
        head, self._head = self._head, None
        parts = []
        if head is not None:
            parts += [head, self._framing(len(body), more), b"\r\n"]
        if body and not has_no_body:
            parts += [b"%x\r\n" % len(body), body, b"\r\n"] if self._is_chunked else [body]
        if not more and self._is_chunked and not has_no_body:
            parts.append(b"0\r\n\r\n")
        if parts:
            self._wire.write(b"".join(parts))

    def _render_head(self, headers: Any) -> bytes:
        lines = [_STATUS_LINES[self._status], b"date: ", self._wire.date(), b"\r\n"]
        for name, value in headers:
            if name == b"content-length":
                self._has_length = True
            elif name == b"connection":
                self.keep_alive = self.keep_alive and value.lower() != b"close"
                continue
            lines += [name, b": ", value, b"\r\n"]
        return b"".join(lines)

    def _framing(self, num_bytes: int, more: bool) -> bytes:
        """Headers that say where the body and the connection end. Decided when the first part of the body is known."""
        is_old = self.scope["http_version"] == "1.0"
        # Before an answer that comes while the request is still arriving, the rest of the request is never read.
        self.keep_alive = self.keep_alive and not self.more_body and not self._wire.is_closing
        framing = b""
        if not self._has_length and self._status not in _NO_BODY:
            if not more:
                framing = b"content-length: %d\r\n" % num_bytes
            elif is_old:
                self.keep_alive = False
            else:
                self._is_chunked = True
                framing = b"transfer-encoding: chunked\r\n"
        if not self.keep_alive:
            return framing + b"connection: close\r\n"
        return framing + (b"connection: keep-alive\r\n" if is_old else b"")


def render_refusal(error: ApiError, date: bytes) -> bytes:
    """The whole answer to what was no request, or too much of one; the connection ends with it."""
    body = error.body()
    headers = {"content-type": "application/json", "content-length": len(body), **error.headers, "connection": "close"}
    lines = [f"HTTP/1.1 {error.status} {_PHRASES[error.status]}", f"date: {date.decode()}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
