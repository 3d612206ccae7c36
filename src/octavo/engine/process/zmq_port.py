"""The engine's side of the socket between front ends and an engine.

Owns: the ROUTER socket, waking it, dropping frames that are no messages.   Does not own: what messages mean (loop.py).
A front end is known by its socket's identity, `client-<number>`. Frames of others, garbled ones and too large ones are
dropped and counted; they change nothing. Nothing here waits but `wait`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import zmq

from octavo.base.log import get_logger
from octavo.proto.codec import MAX_CLIENT_BYTES, ProtocolError, client_codec, engine_codec
from octavo.proto.messages import ClientMessage, EngineMessage

logger = get_logger(__name__)

MAX_MESSAGES_PER_TURN = 64
"""So many are taken between two steps, that a flood of requests cannot hold up those that run."""

_IDENTITY = re.compile(rb"client-(\d{1,6})")


def client_identity(client_idx: int) -> bytes:
    """The identity of a front end's socket."""
    return b"client-%d" % client_idx


class ZmqPort:
    """Bound at `address`; one thread uses it, any may `wake` it."""

    def __init__(self, address: str) -> None:
        self.num_dropped_frames = 0
        self._client_codec = client_codec()
        self._engine_codec = engine_codec()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CLIENT_BYTES)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.bind(address)
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._wake_fd, zmq.POLLIN)

    def receive(self) -> Iterator[tuple[int, ClientMessage]]:
        """See Port.receive."""
        for _ in range(MAX_MESSAGES_PER_TURN):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            match = _IDENTITY.fullmatch(frames[0])
            if match is None or len(frames) != 2:
                self._drop(f"{len(frames)} frames of {frames[0][:32]!r}")
                continue
            try:
                message = self._client_codec.decode(frames[1])
            except ProtocolError as error:
                self._drop(str(error))
                continue
            yield int(match[1]), message

    def _drop(self, why: str) -> None:
        self.num_dropped_frames += 1
        if self.num_dropped_frames.bit_count() == 1:  # the 1st, 2nd, 4th, ... : a flood of them is not a flood of lines
            logger.warning("dropped frame %d that is no message: %.300s", self.num_dropped_frames, why)

    def send(self, client_idx: int, message: EngineMessage) -> None:
        """See Port.send. Raises ProtocolError for a message above the cap."""
        self._socket.send_multipart([client_identity(client_idx), self._engine_codec.encode(message)], zmq.NOBLOCK)

    def wait(self, timeout_s: float | None) -> None:
        """See Port.wait."""
        ready = self._poller.poll(None if timeout_s is None else int(timeout_s * 1000))
        if any(source == self._wake_fd for source, _ in ready):
            os.eventfd_read(self._wake_fd)

    def wake(self) -> None:
        """See Port.wake."""
        os.eventfd_write(self._wake_fd, 1)

    def close(self) -> None:
        """Nothing can be sent or woken afterwards."""
        self._socket.close()
        self._context.term()
        os.close(self._wake_fd)
