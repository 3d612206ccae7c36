"""An engine in a process of its own, as a front end sees it.

Owns: the front end's socket to the present engine, the two ways to learn of engines: supervising one, or being told.
Does not own: the process (supervisor.py), requests.
Reading is driven by the socket's descriptor: an idle pair costs nothing.
"""

from __future__ import annotations

import asyncio
import socket

import msgspec
import zmq

from octavo.base.errors import EngineDeadError
from octavo.base.log import get_logger
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.front.link import LinkListener
from octavo.engine.process.channel import Channel
from octavo.engine.process.spawned import SpawnedEngine
from octavo.engine.process.supervisor import EngineSupervisor, RunningEngine
from octavo.engine.process.zmq_port import client_identity
from octavo.fault.policy import RestartPolicy
from octavo.proto.codec import (
    MAX_ENGINE_BYTES,
    ProtocolError,
    client_codec,
    engine_codec,
    front_end_codec,
    news_codec,
)
from octavo.proto.messages import (
    ClientMessage,
    EngineDown,
    EngineGone,
    EngineRestarting,
    EngineUp,
    FrontEndMessage,
    KillEngine,
    NewsMessage,
)

logger = get_logger(__name__)

MAX_MESSAGES_PER_TURN = 32
"""So many are read before other work of the event loop gets its turn."""


class EngineSocket:
    """A front end's connection to one engine process."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str, listener: LinkListener, client_idx: int):
        self._listener = listener
        self._client_codec = client_codec()
        self._engine_codec = engine_codec()
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._is_read_scheduled = False
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, client_identity(client_idx))
        self._socket.setsockopt(zmq.LINGER, 0)
        # Unbounded: what is sent is bounded by the requests that were admitted.
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_ENGINE_BYTES)
        self._socket.connect(address)
        self._fd = int(self._socket.getsockopt(zmq.FD))
        self._loop.add_reader(self._fd, self._read)

    def send(self, message: ClientMessage) -> None:
        """Raises ProtocolError for a message that is too large."""
        self._socket.send(self._client_codec.encode(message), zmq.NOBLOCK)
        # Sending may take the descriptor's signal for what has come in meanwhile.
        self._schedule_read()

    def _schedule_read(self) -> None:
        if not self._is_read_scheduled:
            self._is_read_scheduled = True
            self._loop.call_soon(self._read_scheduled)

    def _read_scheduled(self) -> None:
        self._is_read_scheduled = False
        self._read()

    def _read(self) -> None:
        for _ in range(MAX_MESSAGES_PER_TURN):
            # Asked before, since an exception for nothing to read costs as much as reading.
            if not self._is_open or not int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
                return
            frame = self._socket.recv(zmq.NOBLOCK)
            try:
                message = self._engine_codec.decode(frame)
            except ProtocolError as error:
                self._listener.note_dropped_frame(str(error))
                continue
            self._listener.receive(message)
        self._schedule_read()

    def close(self) -> None:
        """Nothing is received afterwards. Idempotent."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)
            self._socket.close()


class SocketLink:
    """What the links to engine processes share: the socket to the present one, renewed with every incarnation."""

    def __init__(self, listener: LinkListener, *, client_idx: int) -> None:
        self._listener = listener
        self._client_idx = client_idx
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: EngineSocket | None = None

    def send(self, message: ClientMessage) -> None:
        """See EngineLink.send."""
        if self._socket is None:
            raise EngineDeadError("no engine is up")
        self._socket.send(message)

    def disconnect(self) -> None:
        """Nothing of the present engine is received afterwards."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Nothing can be sent afterwards. Idempotent."""
        self.disconnect()
        self._context.term()

    # ---- news of the engine, on their way to the listener -----------------------------------------------------------

    def engine_up(self, engine: RunningEngine) -> None:
        self._socket = EngineSocket(self._context, engine.address, self._listener, self._client_idx)
        self._listener.engine_up(engine)

    def engine_restarting(self) -> None:
        self._listener.engine_restarting()

    def engine_down(self, cause: str, *, is_in_row: bool) -> None:
        self.disconnect()
        self._listener.engine_down(cause, is_in_row=is_in_row)

    def engine_dead(self, cause: str) -> None:
        self.disconnect()
        self._listener.engine_dead(cause)


class ProcessLink:
    """An EngineLink to a process that this program supervises itself."""

    def __init__(
        self,
        config: EngineConfig,
        listener: LinkListener,
        *,
        client_idx: int = 0,
        policy: RestartPolicy | None = None,
        spawned: SpawnedEngine | None = None,
    ) -> None:
        self._sockets = SocketLink(listener, client_idx=client_idx)
        self.supervisor = EngineSupervisor(config, self._sockets, policy=policy, spawned=spawned)

    async def start(self) -> None:
        """See EngineLink.start."""
        try:
            await self.supervisor.start()
        except BaseException:
            self._sockets.close()
            raise

    def send(self, message: ClientMessage) -> None:
        """See EngineLink.send."""
        self._sockets.send(message)

    def kill(self, cause: str) -> None:
        """See EngineLink.kill."""
        self.supervisor.kill(cause)

    async def stop(self, timeout_s: float) -> None:
        """See EngineLink.stop."""
        self._sockets.disconnect()
        await self.supervisor.stop(timeout_s)
        self._sockets.close()


class AttachedLink:
    """An EngineLink to the engine of another program, the launcher, that supervises it (hub.py).

    end: our end of the channel to the launcher. When the launcher goes, the engine goes with it: engine_dead.
    """

    def __init__(self, end: socket.socket, listener: LinkListener, *, client_idx: int) -> None:
        self._sockets = SocketLink(listener, client_idx=client_idx)
        self._end = end
        self._channel: Channel[NewsMessage, FrontEndMessage] | None = None
        self._incarnation = -1
        self._first: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """See EngineLink.start."""
        self._first = asyncio.get_running_loop().create_future()
        self._channel = Channel(
            self._end, news_codec(), front_end_codec(), on_message=self._hear, on_end=self._lose_launcher
        )
        await self._first

    def send(self, message: ClientMessage) -> None:
        """See EngineLink.send."""
        self._sockets.send(message)

    def kill(self, cause: str) -> None:
        """See EngineLink.kill. The launcher does it, unless that engine is already gone."""
        if self._channel is not None:
            self._channel.send(KillEngine(incarnation=self._incarnation, cause=cause))

    async def stop(self, timeout_s: float) -> None:
        """Leave the engine; the launcher has its requests ended."""
        if self._channel is not None:
            self._channel.close()
        self._sockets.close()

    def _hear(self, message: NewsMessage) -> None:
        if self._incarnation < 0 and isinstance(message, EngineDown | EngineRestarting):
            return  # of an engine that was never ours: we joined while it was being replaced
        match message:
            case EngineUp():
                self._incarnation = message.incarnation
                self._sockets.engine_up(
                    RunningEngine(
                        address=message.address,
                        incarnation=message.incarnation,
                        config=msgspec.msgpack.decode(message.config, type=ResolvedConfig),
                        phases=message.phases,
                    )
                )
                self._settle_first(None)
            case EngineDown():
                self._sockets.engine_down(message.cause, is_in_row=message.is_in_row)
            case EngineRestarting():
                self._sockets.engine_restarting()
            case EngineGone():
                self._give_up(message.cause)

    def _lose_launcher(self) -> None:
        self._give_up("the launcher is gone")

    def _give_up(self, cause: str) -> None:
        self._sockets.engine_dead(cause)
        self._settle_first(EngineDeadError(cause))

    def _settle_first(self, error: EngineDeadError | None) -> None:
        if self._first is None or self._first.done():
            return
        if error is None:
            self._first.set_result(None)
        else:
            self._first.set_exception(error)
