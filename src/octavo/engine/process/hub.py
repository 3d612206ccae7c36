"""One supervised engine for several front-end processes: the launcher's part.

Owns: a channel to each front end, telling all of them what becomes of the engine, telling the engine when one is gone.
Does not own: starting front ends, listening sockets (server/), the engine's process (supervisor.py).

    hub = EngineHub(config)
    end = hub.connect(client_idx)      pass its descriptor to the front end's process, then close it here
    await hub.start()                  front ends load meanwhile and hear of the engine when it is up
A front end attaches with AsyncOptions(client_idx=..., launcher_fd=fd). One that died is connected again by its number.
"""

from __future__ import annotations

import socket

import msgspec

from octavo.base.log import get_logger
from octavo.config.schema import EngineConfig
from octavo.engine.process.channel import Channel, channel_pair
from octavo.engine.process.spawned import SpawnedEngine
from octavo.engine.process.supervisor import EngineSupervisor, RunningEngine
from octavo.fault.policy import RestartPolicy
from octavo.proto.codec import front_end_codec, news_codec
from octavo.proto.messages import (
    EngineDown,
    EngineGone,
    EngineRestarting,
    EngineUp,
    FrontEndMessage,
    NewsMessage,
)

logger = get_logger(__name__)


class EngineHub:
    """An EngineListener that repeats what it hears. On one event loop."""

    def __init__(
        self, config: EngineConfig, *, policy: RestartPolicy | None = None, spawned: SpawnedEngine | None = None
    ) -> None:
        self.supervisor = EngineSupervisor(config, self, policy=policy, spawned=spawned)
        self._channels: dict[int, Channel[FrontEndMessage, NewsMessage]] = {}
        self._latest: NewsMessage | None = None
        self._incarnation = -1

    def connect(self, client_idx: int) -> socket.socket:
        """The other end of a new channel, for the process of that front end."""
        ours, theirs = channel_pair()
        self._channels[client_idx] = Channel(
            ours,
            front_end_codec(),
            news_codec(),
            on_message=self._obey,
            on_end=lambda: self._lose_front_end(client_idx),
        )
        if isinstance(self._latest, EngineUp | EngineGone):
            self._channels[client_idx].send(self._latest)
        return theirs

    async def start(self) -> None:
        """Start the engine and wait until it is up. Raises as EngineSupervisor.start does."""
        await self.supervisor.start()

    async def stop(self, timeout_s: float) -> None:
        """End the engine and leave the front ends alone. Idempotent."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        await self.supervisor.stop(timeout_s)

    def _lose_front_end(self, client_idx: int) -> None:
        self._channels.pop(client_idx).close()
        self.supervisor.client_gone(client_idx)

    def _obey(self, message: FrontEndMessage) -> None:
        # Another front end may have had it killed already.
        if message.incarnation == self._incarnation:
            self.supervisor.kill(message.cause)

    def _tell_all(self, message: NewsMessage) -> None:
        self._latest = message
        for channel in self._channels.values():
            channel.send(message)

    def engine_up(self, engine: RunningEngine) -> None:
        """See EngineListener."""
        self._incarnation = engine.incarnation
        config = msgspec.Raw(msgspec.msgpack.encode(engine.config))
        self._tell_all(
            EngineUp(address=engine.address, incarnation=engine.incarnation, config=config, phases=engine.phases)
        )

    def engine_down(self, cause: str, *, is_in_row: bool) -> None:
        """See EngineListener."""
        self._tell_all(EngineDown(cause=cause, is_in_row=is_in_row))

    def engine_restarting(self) -> None:
        """See EngineListener."""
        self._tell_all(EngineRestarting())

    def engine_dead(self, cause: str) -> None:
        """See EngineListener."""
        self._tell_all(EngineGone(cause=cause))
