"""How messages between a front end and one of its helper processes are framed.

Owns: the form and its size.   Does not own: the messages (template/messages.py, grammar_check/messages.py).
A frame is four bytes of length, most significant first, and so many of msgpack.
"""

from __future__ import annotations

import socket
import struct

import msgspec

MAX_FRAME_BYTES = 64 << 20
LENGTH = struct.Struct(">I")


def frame(message: msgspec.Struct) -> bytes:
    """As it goes over the wire. Raises ValueError for one above MAX_FRAME_BYTES."""
    data = msgspec.msgpack.encode(message)
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError(f"{len(data)} bytes, at most {MAX_FRAME_BYTES}")
    return LENGTH.pack(len(data)) + data


def receive(end: socket.socket) -> bytes | None:
    """The next frame, waited for; None: the other end is gone."""
    head = _receive_exactly(end, LENGTH.size)
    if head is None:
        return None
    (num_bytes,) = LENGTH.unpack(head)
    return _receive_exactly(end, num_bytes) if num_bytes <= MAX_FRAME_BYTES else None


def _receive_exactly(end: socket.socket, num_bytes: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < num_bytes:
        part = end.recv(min(1 << 20, num_bytes - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)
