"""One request to an endpoint, and the answer to it.

Owns: reading headers, request ids, replying once or as a stream of events, ending when the client is gone.
Does not own: the protocol below (cycle.py, or any ASGI server), what is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from octavo.engine.grammar_check.turns import Asker
from octavo.server.cycle import ClientDisconnectedError, Message, Scope
from octavo.server.errors import ApiError, invalid_value, write_openai_error

_SAFE_ID = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")
_ENCODER = msgspec.json.Encoder()
JSON_TYPE = "application/json"


class Exchange:
    """Made for each request. `status` is None until the answer starts."""

    def __init__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
        path: str,
    ) -> None:
        self.scope = scope
        self.path = path
        self.receive = receive
        self.write_error = write_openai_error
        """(status, body) of an error, given the request's id."""
        self.speaks_anthropic = False
        """The client knows Anthropic's forms; see anthropic/route.py."""
        self.status: int | None = None
        self.extra_headers: list[tuple[bytes, bytes]] = []
        """Sent with every answer."""
        self.notes: dict[str, Any] = {}
        """Fields of the request's log line (obs.request_log.RequestLine) that endpoints know."""
        self.start_s = time.monotonic()
        self._send = send
        self._request_id: str | None = None
        self._is_finished = False
        self._is_gone = False

    @property
    def method(self) -> str:
        method: str = self.scope["method"]
        return method

    @property
    def asker(self) -> Asker:
        """Who asks, among those who wait for their turn."""
        host, port = self.scope.get("client") or ("", "")
        return str(host), str(port)

    def header(self, name: bytes) -> str | None:
        """The first header of that name (lower case)."""
        for key, value in self.scope["headers"]:
            if key == name:
                text: str = value.decode("latin-1").strip()
                return text
        return None

    def headers(self, name: bytes) -> list[bytes]:
        """All headers of that name."""
        return [value for key, value in self.scope["headers"] if key == name]

    def choose_request_id(self, from_body: str | None = None) -> str:
        """X-Request-Id, else the body's, else a random one. Raises ApiError for one that is not fit for logs."""
        header = self.header(b"x-request-id")
        for name, value in (("X-Request-Id", header), ("request_id", from_body)):
            if value is not None:
                if not _SAFE_ID.fullmatch(value):
                    remedy = "1 to 128 letters, digits and ._:+/=@-"
                    raise invalid_value(f"{name}: a request id has {remedy}", "request_id")
                self._request_id = value
                return value
        return self.request_id

    @property
    def request_id(self) -> str:
        """The id that was chosen; before that the header's where it is fit for logs, or a random one."""
        if self._request_id is None:
            header = self.header(b"x-request-id")
            is_fit = header is not None and _SAFE_ID.fullmatch(header)
            self._request_id = header if header is not None and is_fit else secrets.token_hex(16)
        return self._request_id

    async def reply(
        self,
        body: bytes,
        *,
        status: int = 200,
        content_type: str = JSON_TYPE,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """The whole answer."""
        lines = [(b"content-length", b"%d" % len(body)), *self.extra_headers]
        if body:
            lines.insert(0, (b"content-type", content_type.encode()))
        lines += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": lines})
        self._is_finished = True
        await self._send({"type": "http.response.body", "body": body})

    async def reply_json(self, value: object) -> None:
        """200 with a struct or a dict."""
        await self.reply(_ENCODER.encode(value))

    async def fail(self, error: ApiError) -> None:
        """The answer is an error."""
        status, body = self.write_error(error, self.request_id)
        await self.reply(body, status=status, headers=error.headers)

    async def start_stream(self) -> None:
        """200, events follow. Calling again does nothing."""
        if self.status is not None:
            return
        self.status = 200
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
            *self.extra_headers,
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def write(self, data: bytes) -> None:
        """More of the stream; waits while the client is slow. Raises ClientDisconnectedError."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish_stream(self, data: bytes) -> None:
        """The stream's last bytes."""
        self._is_finished = True
        await self._send({"type": "http.response.body", "body": data})

    @contextlib.asynccontextmanager
    async def ends_with_client(self) -> AsyncIterator[None]:
        """Cancel what is inside when the client goes away; then ClientDisconnectedError is raised."""
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.get_running_loop().create_task(self._cancel_on_disconnect(task))
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_gone:
                raise
            task.uncancel()
            raise ClientDisconnectedError from None
        finally:
            watcher.cancel()

    async def _cancel_on_disconnect(self, task: asyncio.Task[object]) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if not self._is_finished:
            self._is_gone = True
            task.cancel()
