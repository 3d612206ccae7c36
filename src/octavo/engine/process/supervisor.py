"""Keeps one engine process alive: starts it, notices its death, starts a successor.

Owns: the sockets' folder, the present child, the count of deaths in a row.
Does not own: what to do about a death (fault/policy.py), requests (the listener's), one process (child.py).

    start ─► EngineReady ─► listener.engine_up
    death ─► listener.engine_down ─► restart after the policy's delay ─► engine_up ...
                                  └► listener.engine_dead when the policy gives up
A first start that fails is not repeated: `start` raises what the engine's process would have raised here.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

import msgspec

from octavo.base.errors import (
    CapacityError,
    ConfigError,
    ConfigProblem,
    EngineDeadError,
    LoadError,
    ModelNotFoundError,
    OctavoError,
)
from octavo.base.log import ROOT_LOGGER, get_logger
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.process.child import EngineChild
from octavo.engine.process.runtime_dir import RuntimeDir
from octavo.engine.process.spawned import SpawnedEngine
from octavo.fault.policy import GiveUp, RestartPolicy
from octavo.proto.messages import ClientGone, EngineFailed, EngineReady, Shutdown, StartEngine, StatusMessage

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningEngine:
    """An engine that is up."""

    address: str
    incarnation: int
    config: ResolvedConfig
    phases: dict[str, float]
    """Phase of its start-up -> seconds."""


class EngineListener(Protocol):
    """Whoever must know what becomes of the engine. Called on the event loop; must not block."""

    def engine_up(self, engine: RunningEngine) -> None: ...

    def engine_down(self, cause: str, *, is_in_row: bool) -> None:
        """It died; engine_restarting or engine_dead follows. is_in_row: see RestartPolicy."""
        ...

    def engine_restarting(self) -> None:
        """A successor was started and is loading."""
        ...

    def engine_dead(self, cause: str) -> None:
        """It will not come back."""
        ...


class EngineSupervisor:
    """One engine, restarted as long as the policy says. On one event loop."""

    def __init__(
        self,
        config: EngineConfig,
        listener: EngineListener,
        *,
        policy: RestartPolicy | None = None,
        start_timeout_s: float = 600.0,
        spawned: SpawnedEngine | None = None,
    ) -> None:
        self._config = config
        self._listener = listener
        self._policy = policy or RestartPolicy()
        self._start_timeout_s = start_timeout_s
        self._spawned = spawned
        """A process for the first engine, started before there was anything to tell it."""
        self._dir: RuntimeDir | None = None
        self._child: EngineChild | None = None
        self._next_incarnation = 0
        self._up_since_s: float | None = None
        self._num_deaths_in_row = 0
        self._failure: EngineFailed | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        self._first: asyncio.Future[None] | None = None
        self._stopped: asyncio.Event | None = None

    @property
    def pid(self) -> int | None:
        """Of the present engine process."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the first engine and wait until it is up.

        Raises ConfigError, LoadError, CapacityError as the engine did, EngineDeadError for everything else.
        """
        self._dir = RuntimeDir()
        self._first = asyncio.get_running_loop().create_future()
        try:
            self._spawn()
            await self._first
        except BaseException:
            await self.stop(0.0)
            raise

    def kill(self, cause: str) -> None:
        """Have the present engine write its stacks, and kill it; its death is then handled like any other."""
        if self._child is not None:
            self._child.kill(cause, with_stacks=True)

    def client_gone(self, client_idx: int) -> None:
        """A front end has died: the engine is to end its requests."""
        if self._child is not None:
            self._child.tell(ClientGone(client_idx=client_idx))

    async def stop(self, timeout_s: float) -> None:
        """End the engine in order, by force after timeout_s, and remove every trace. Idempotent."""
        if self._stopped is None:
            self._stopped = asyncio.Event()
            self._cancel_timer()
        if self._child is not None:
            self._child.tell(Shutdown())
            try:
                await asyncio.wait_for(self._stopped.wait(), timeout_s)
            except TimeoutError:
                self._child.kill("it did not end in time")
                await self._stopped.wait()
        if self._dir is not None:
            self._dir.remove()

    # ---- one child ------------------------------------------------------------------------------------------------

    def _spawn(self) -> None:
        assert self._dir is not None
        incarnation = self._next_incarnation
        self._next_incarnation += 1
        root = logging.getLogger(ROOT_LOGGER)
        start = StartEngine(
            config=msgspec.Raw(msgspec.msgpack.encode(self._config)),
            address=self._dir.socket_address(_socket_name(incarnation)),
            incarnation=incarnation,
            log_level=self._config.observability.log_level if root.handlers else "warning",
            log_format=self._config.observability.log_format,
        )
        self._failure = None
        self._up_since_s = None
        spawned, self._spawned = self._spawned, None
        self._child = EngineChild(start, on_status=self._on_status, on_exit=self._on_exit, spawned=spawned)
        cause = f"it was not up within {self._start_timeout_s:g} s"
        self._start_timer = self._loop.call_later(self._start_timeout_s, self.kill, cause)

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def _cancel_timer(self) -> None:
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None

    def _on_status(self, child: EngineChild, message: StatusMessage) -> None:
        if isinstance(message, EngineFailed):
            self._failure = message
            return
        self._cancel_timer()
        self._up_since_s = self._loop.time()
        engine = self._describe(child, message)
        # A successor must be its predecessor's equal: what was derived from the machine's state then stays.
        self._config = engine.config.options
        logger.info("engine %d is up: process %d", child.incarnation, child.pid)
        self._listener.engine_up(engine)
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def _describe(self, child: EngineChild, ready: EngineReady) -> RunningEngine:
        assert self._dir is not None
        return RunningEngine(
            address=self._dir.socket_address(_socket_name(child.incarnation)),
            incarnation=child.incarnation,
            config=msgspec.msgpack.decode(ready.config, type=ResolvedConfig),
            phases=ready.phases,
        )

    def _on_exit(self, child: EngineChild, cause: str) -> None:
        assert self._dir is not None
        self._child = None
        self._cancel_timer()
        self._dir.remove_socket(_socket_name(child.incarnation))
        if self._failure is not None:
            cause = self._failure.message
        if self._stopped is not None:
            self._stopped.set()
            if self._first is not None and not self._first.done():
                self._first.set_exception(EngineDeadError("stopped while starting"))
        elif self._first is not None and not self._first.done():
            self._first.set_exception(_as_error(self._failure, cause))
        else:
            self._handle_death(cause)

    def _handle_death(self, cause: str) -> None:
        lived_s = 0.0 if self._up_since_s is None else self._loop.time() - self._up_since_s
        is_in_row = self._policy.is_in_row(lived_s)
        self._num_deaths_in_row = self._num_deaths_in_row + 1 if is_in_row else 1
        decision = self._policy.decide(self._num_deaths_in_row)
        self._listener.engine_down(cause, is_in_row=is_in_row)
        if isinstance(decision, GiveUp):
            logger.error("%s; giving up: %s", cause, decision.reason)
            self._listener.engine_dead(f"{decision.reason}; the last time: {cause}")
            return
        logger.error("%s; a successor starts in %g s", cause, decision.delay_s)
        self._start_timer = self._loop.call_later(decision.delay_s, self._respawn)

    def _respawn(self) -> None:
        try:
            self._spawn()
        except OSError as error:
            self._listener.engine_dead(f"no successor can be started: {error}")
        else:
            self._listener.engine_restarting()


def _socket_name(incarnation: int) -> str:
    return f"e{incarnation}"


def _as_error(failure: EngineFailed | None, cause: str) -> OctavoError:
    """The error of the engine's process, to be raised in this one."""
    if failure is None:
        return EngineDeadError(f"the engine did not start: {cause}")
    if failure.kind == "config":
        return ConfigError([ConfigProblem(p.option, p.value, p.remedy) for p in failure.problems])
    errors: dict[str, type[OctavoError]] = {
        "load": LoadError,
        "model_not_found": ModelNotFoundError,
        "capacity": CapacityError,
    }
    return errors.get(failure.kind, EngineDeadError)(failure.message)
