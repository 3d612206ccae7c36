"""An HttpServer around any ASGI application, in the test's own event loop, and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json

from octavo.server.body import BodyLimits, read_body
from octavo.server.http_limits import HttpLimits
from octavo.server.listener import HttpServer, bind_tcp

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def post(body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*chunks: bytes) -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"


async def echo(scope, receive, send):
    """Answers with the body, or with method and path where there is none."""
    body = await read_body(receive, None, BodyLimits())
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-path", scope["raw_path"])]})
    await send({"type": "http.response.body", "body": body or scope["method"].encode()})


def code_of(body):
    """Of an error's body."""
    return json.loads(body)["error"]["code"]


def run(test):
    """A coroutine, for half a minute at most."""
    asyncio.run(asyncio.wait_for(test, 30))


@contextlib.asynccontextmanager
async def serving(app, *, on_refusal=None, **limits):
    """(server, port)."""
    server = HttpServer(app, HttpLimits(**limits), on_refusal)
    sock = bind_tcp("127.0.0.1", 0)
    await server.listen(sock)
    try:
        yield server, sock.getsockname()[1]
    finally:
        await server.close(0.2)


@contextlib.asynccontextmanager
async def connected(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def read_answer(reader):
    """(status, headers, body) of one answer. Raises IncompleteReadError when the connection closes before its end."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode()
    status = int(head.split(" ")[1])
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size = int(await reader.readuntil(b"\r\n"), 16)
            body += (await reader.readexactly(size + 2))[:-2]
            if size == 0:
                return status, headers, body
    return status, headers, await reader.readexactly(int(headers.get("content-length", 0)))


async def ask(port, data):
    """Send bytes on a connection of their own; the first answer."""
    async with connected(port) as (reader, writer):
        writer.write(data)
        return await read_answer(reader)
