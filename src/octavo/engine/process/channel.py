"""One end of a socket pair that carries messages, read by an event loop.

Owns: reading without blocking, the end of the channel, dropping frames that are no messages.
Does not own: what messages mean. A message is one packet (SOCK_SEQPACKET), so there is no framing to get wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Generic, TypeVar

from octavo.base.log import get_logger
from octavo.proto.codec import MAX_CONTROL_BYTES, Codec, ProtocolError

logger = get_logger(__name__)

In = TypeVar("In")
Out = TypeVar("Out")


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends. Neither is inherited by other processes unless it is passed on purpose."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel(Generic[In, Out]):
    """Our end. `on_end` is called once, when the other end is gone; nothing is received after `close`."""

    def __init__(
        self,
        end: socket.socket,
        incoming: Codec[In],
        outgoing: Codec[Out],
        *,
        on_message: Callable[[In], None],
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self._end = end
        self._incoming = incoming
        self._outgoing = outgoing
        self._on_message = on_message
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._is_reading = True
        end.setblocking(False)
        self._loop.add_reader(end, self.read)

    def send(self, message: Out) -> None:
        """Never waits; a message to an end that is gone, or that has stopped reading, is lost."""
        with contextlib.suppress(OSError):
            self._end.send(self._outgoing.encode(message))

    def read(self) -> None:
        """Pass on everything that is there."""
        while self._is_reading:
            try:
                frame = self._end.recv(MAX_CONTROL_BYTES)
            except BlockingIOError:
                return
            except OSError:
                frame = b""
            if not frame:
                self._stop_reading()
                if self._on_end is not None:
                    self._on_end()
                return
            try:
                message = self._incoming.decode(frame)
            except ProtocolError as error:
                logger.error("dropped a frame: %s", error)
                continue
            self._on_message(message)

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._end)

    def close(self) -> None:
        """Idempotent."""
        self._stop_reading()
        self._end.close()
