"""An OpenAI server in a few lines: loopback, scripted answers, any split of the bytes.

with running(Script(num_tokens=3)) as (url, script): ...        # own thread and event loop
async with serving(Script()) as url: ...                        # this event loop
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Script:
    """How the server answers; what it was asked is kept in `requests`."""

    num_tokens: int = 3
    gap_s: float = 0.0
    """Before each token."""
    status: int = 200
    piece_bytes: int | None = None
    """Send answers in pieces of this size, flushed one by one."""
    break_after: int | None = None
    """Close the connection after so many tokens."""
    error_after: int | None = None
    """Send an error event after so many tokens."""
    sends_usage: bool = True
    sends_done: bool = True
    keeps_alive: bool = True
    hangs: bool = False
    ssl: Any = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    """{"path", "headers", "body"} of each."""
    num_connections: int = 0
    num_open: int = 0
    peak_open: int = 0
    metrics: str = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.num_connections += 1
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = first.split(" ")[1]
        if path == "/v1/models":
            return await self._send(writer, _whole(200, {"data": [{"id": "tiny", "root": "/models/tiny"}]}))
        if path == "/metrics":
            return await self._send(writer, _whole(200 if self.metrics else 404, self.metrics))
        self.requests.append({"path": path, "headers": headers, "body": json.loads(body)})
        if self.hangs:
            await asyncio.sleep(60)
        if self.status != 200:
            return await self._send(writer, _whole(self.status, {"error": {"message": "no room", "code": self.status}}))
        self.num_open += 1
        self.peak_open = max(self.peak_open, self.num_open)
        try:
            return await self._stream(writer, is_chat="chat" in path)
        finally:
            self.num_open -= 1

    async def _stream(self, writer: asyncio.StreamWriter, *, is_chat: bool) -> bool:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        head += "" if self.keeps_alive else "Connection: close\r\n"
        await self._send(writer, (head + "\r\n").encode())
        for number in range(self.num_tokens):
            await asyncio.sleep(self.gap_s)
            if number == self.break_after:
                return False
            if number == self.error_after:
                await self._event(writer, {"error": {"message": "the engine died", "code": 500}})
            choice = {"delta": {"content": f"t{number} "}} if is_chat else {"text": f"t{number} "}
            await self._event(writer, {"id": "x", "choices": [{"index": 0, **choice, "logprobs": None}]})
        if self.sends_usage:
            usage = {"prompt_tokens": 7, "completion_tokens": self.num_tokens, "total_tokens": 7 + self.num_tokens}
            await self._event(writer, {"id": "x", "choices": [], "usage": usage})
        if self.sends_done:
            await self._event(writer, "[DONE]")
        await self._send(writer, b"0\r\n\r\n")
        return self.keeps_alive

    async def _event(self, writer: asyncio.StreamWriter, data: Any) -> None:
        event = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
        await self._send(writer, b"%x\r\n%b\r\n" % (len(event), event))

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> bool:
        step = self.piece_bytes or len(data)
        for at in range(0, len(data), step):
            writer.write(data[at : at + step])
            await writer.drain()
            if self.piece_bytes:
                # The peer reads this piece before the next is sent.
                await asyncio.sleep(0)
        return True


def _whole(status: int, content: Any) -> bytes:
    body = (content if isinstance(content, str) else json.dumps(content)).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@asynccontextmanager
async def serving(script: Script):
    """In this event loop; yields the base URL."""
    server = await asyncio.start_server(script.answer, "127.0.0.1", 0, ssl=script.ssl)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if script.ssl else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()


@contextmanager
def running(script: Script):
    """In a thread of its own; yields the base URL."""
    ready, stop = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        async with serving(script) as url:
            found.update(url=url, loop=asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(5)
    try:
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join()
