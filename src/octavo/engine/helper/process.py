"""A helper process from the outside: frames to it and from it, and its end.

Owns: starting it, our end of its socket pair, noticing its death, reaping it.
Does not own: what is said (the message types given), when to start and to end one.
On one event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from typing import Any, Generic, TypeVar

import msgspec

from octavo.engine.helper.frames import LENGTH, MAX_FRAME_BYTES
from octavo.engine.process.entry import command

M = TypeVar("M")


class HelperProcess(Generic[M]):
    """One process, from its start to its end. It dies with the one that started it."""

    def __init__(self, module: str, reply_type: Any) -> None:
        """module: its `main` is given the descriptor of its end. reply_type: the union of what it says."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            fd = theirs.fileno()
            run = command(module, str(fd), at_parents_death=signal.SIGKILL)
            self._process = subprocess.Popen(run, pass_fds=[fd], stdin=subprocess.DEVNULL)
        self._end = ours
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(reply_type)

    @property
    def is_alive(self) -> bool:
        return self._pidfd >= 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of one that has ended; minus the signal's number where a signal ended it."""
        return self._process.returncode

    async def send(self, data: bytes) -> None:
        """A frame. Raises OSError."""
        await self._loop.sock_sendall(self._end, data)

    async def receive(self) -> M:
        """The next message. Raises EOFError when the process has ended, OSError."""
        (num_bytes,) = LENGTH.unpack(await self._receive_exactly(LENGTH.size))
        if num_bytes > MAX_FRAME_BYTES:
            raise EOFError
        return self._decoder.decode(await self._receive_exactly(num_bytes))

    async def _receive_exactly(self, num_bytes: int) -> bytearray:
        parts = bytearray()
        while len(parts) < num_bytes:
            part = await self._loop.sock_recv(self._end, min(1 << 20, num_bytes - len(parts)))
            if not part:
                raise EOFError
            parts += part
        return parts

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        self._process.wait()

    def kill(self) -> None:
        """End it now. Idempotent. One that is just ending keeps its own exit code."""
        if self.is_alive:
            self._process.kill()
            self._reap()
        self._end.close()
