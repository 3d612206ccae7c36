"""One HTTP request on a connection of its own, by clients of every kind: patient, gone, slow.

Owns: what a client does to its connection.   Does not own: what is asked (requests.py), framing (bench/serve).
"""

from __future__ import annotations

import asyncio
import random
import socket
from dataclasses import dataclass
from enum import Enum

from octavo.bench.serve.http_response import ResponseReader

TIMEOUT_S = 120.0
SLOW_READ_BYTES, SLOW_PAUSE_S, SLOW_FOR_S = 256, 0.05, 3.0
MAX_ABORT_BYTES = 4000


class Manner(Enum):
    """How a client behaves."""

    PATIENT = "reads to the end"
    ABORTS = "goes away in the middle of the answer"
    IMPATIENT = "goes away before the answer begins"
    HANGS_UP = "goes away in the middle of its request"
    SLOW = "reads a few bytes at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One thing to do. `statuses` are the right ones; a client that goes away gets none."""

    name: str
    data: bytes
    """All of it, head included."""
    manner: Manner = Manner.PATIENT
    statuses: tuple[int, ...] = (200,)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Status 0: the client was gone by then."""

    status: int = 0
    body: bytes = b""


def render(method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body or method == "POST":
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return (head + "\r\n").encode() + body


async def perform(request: Request, port: int, rng: random.Random) -> Answer:
    """Do it. Raises OSError, TimeoutError and ResponseError when the server does not do its part."""
    async with asyncio.timeout(TIMEOUT_S):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if request.manner is Manner.SLOW:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, ("127.0.0.1", port))
            return await _talk(request, sock, rng)
        finally:
            if rng.random() < 0.5:
                # Reset in place of an orderly end.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            sock.close()


async def _talk(request: Request, sock: socket.socket, rng: random.Random) -> Answer:
    loop = asyncio.get_running_loop()
    manner = request.manner
    if manner is Manner.HANGS_UP:
        await loop.sock_sendall(sock, request.data[: rng.randrange(1, len(request.data))])
        await asyncio.sleep(rng.random() * 0.2)
        return Answer()
    await loop.sock_sendall(sock, request.data)
    if manner is Manner.IMPATIENT:
        await asyncio.sleep(rng.random() * 0.3)
        return Answer()
    reader, parts, num_read = ResponseReader(), [], 0
    num_wanted = rng.randrange(1, MAX_ABORT_BYTES) if manner is Manner.ABORTS else None
    slow_until_s = loop.time() + SLOW_FOR_S if manner is Manner.SLOW else 0.0
    while not reader.is_complete:
        is_slow = loop.time() < slow_until_s
        data = await loop.sock_recv(sock, SLOW_READ_BYTES if is_slow else 1 << 16)
        if not data:
            reader.finish()
            break
        parts.append(reader.feed(data))
        num_read += len(data)
        if num_wanted is not None and num_read >= num_wanted:
            return Answer()
        if is_slow:
            await asyncio.sleep(SLOW_PAUSE_S)
    return Answer(reader.status, b"".join(parts))
