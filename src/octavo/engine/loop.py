"""The engine's life in its own process or thread: messages in, steps, messages out.

Owns: the order of things in one turn, what an error of one request becomes, which front end gets which delta.
Does not own: planning and steps (core.py), bytes and waiting (the port).

One turn: take what has come in (a bounded number), collect the steps that are done, plan and submit the next, send
what was gained. The step runs while the deltas of the one before travel. Between turns it waits in the port, at no
cost, for a message, a finished step, or the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from octavo.base.clock import MonotonicClock
from octavo.base.errors import CapacityError, ValidationError
from octavo.base.log import get_logger
from octavo.engine.core import EngineCore
from octavo.obs.throughput import ThroughputLog, ThroughputReport
from octavo.proto.codec import ProtocolError
from octavo.proto.failure import Failure
from octavo.proto.messages import (
    Abort,
    Add,
    ClientMessage,
    Deltas,
    EngineMessage,
    GetStats,
    Load,
    Ping,
    Pong,
    Rejected,
    RejectionKind,
    ResetPrefixCache,
    ResetReply,
    StatsReply,
)
from octavo.proto.output import RequestDelta
from octavo.proto.stats import EngineStats

logger = get_logger(__name__)

UNPLANNED_WAIT_S = 0.05
"""How long to wait where work is there and no step is in flight: it waits for time (a deadline, a readiness check)."""


def throughput_log(*, is_disabled: bool) -> ThroughputLog | None:
    """The line about throughput goes to this module's logger."""
    return None if is_disabled else ThroughputLog(ThroughputReport(), MonotonicClock(), logger.info)


class Port(Protocol):
    """Where messages come from and go to."""

    @property
    def num_dropped_frames(self) -> int:
        """What came in and was no message."""
        ...

    def receive(self) -> Iterable[tuple[int, ClientMessage]]:
        """(front end, message) of a bounded number of messages that are there; never waits."""
        ...

    def send(self, client_idx: int, message: EngineMessage) -> None:
        """Hand over; never waits. Nothing happens when that front end is gone. Raises ProtocolError when too large."""
        ...

    def wait(self, timeout_s: float | None) -> None:
        """Block until `receive` has something, `wake` was called, or the time is up."""
        ...

    def wake(self) -> None:
        """End the present or the next `wait`. From any thread."""
        ...


class EngineLoop:
    """Drives one core through one port. `run` in one thread; `stop` and `drop_client` from any."""

    def __init__(
        self, core: EngineCore, port: Port, *, incarnation: int, throughput: ThroughputLog | None = None
    ) -> None:
        self._core = core
        self._port = port
        self._incarnation = incarnation
        self._throughput = throughput
        self._is_stopping = False
        self._clients: dict[str, int] = {}  # live sequence -> its front end
        self._gone_clients: list[int] = []

    def run(self) -> None:
        """Turn until `stop`. Raises EngineDeadError and whatever else the core cannot go on after."""
        while not self._is_stopping:
            self._take_messages()
            self._drop_gone_clients()
            deltas = self._core.advance()
            self._send(deltas)
            self._report(deltas)
            has_time_to_wait_for = self._core.has_work and not self._core.is_waiting_for_step
            self._port.wait(UNPLANNED_WAIT_S if has_time_to_wait_for else None)

    def _report(self, deltas: list[RequestDelta]) -> None:
        if self._throughput is None:
            return
        self._throughput.turn(
            sum(len(delta.token_ids) for delta in deltas),
            is_busy=self._core.has_work,
            stats=lambda: self._core.stats().scheduler,
        )

    def stop(self) -> None:
        """Let `run` return after the present turn."""
        self._is_stopping = True
        self._port.wake()

    def drop_client(self, client_idx: int) -> None:
        """A front end is gone: end its requests."""
        self._gone_clients.append(client_idx)
        self._port.wake()

    def _take_messages(self) -> None:
        for client_idx, message in self._port.receive():
            match message:
                case Add():
                    self._add(client_idx, message)
                case Abort():
                    self._send(self._core.abort(message.request_ids))
                case Ping():
                    self._port.send(client_idx, Pong(call_id=message.call_id, load=self._load()))
                case GetStats():
                    self._port.send(client_idx, StatsReply(call_id=message.call_id, stats=self._stats()))
                case ResetPrefixCache():
                    is_done = self._core.reset_prefix_cache(reset_running=message.reset_running)
                    self._port.send(client_idx, ResetReply(call_id=message.call_id, is_done=is_done))

    def _add(self, client_idx: int, message: Add) -> None:
        """Take a request in, or answer with its rejection: an error of one request concerns nobody else."""
        request = message.request
        try:
            self._core.add(msgspec.structs.replace(request, client_idx=client_idx))
        except ValidationError as error:
            self._reject(client_idx, message, "validation", error)
        except CapacityError as error:
            self._reject(client_idx, message, "capacity", error)
        except Exception as error:
            logger.exception("request %s could not be taken in", request.request_id)
            self._reject(client_idx, message, "internal", error)
        else:
            self._clients[request.request_id] = client_idx

    def _reject(self, client_idx: int, message: Add, kind: RejectionKind, error: Exception) -> None:
        parameter = error.parameter if isinstance(error, ValidationError) else None
        text = f"{type(error).__name__}: {error}" if kind == "internal" else str(error)
        request = message.request
        rejected = Rejected(
            request_id=request.request_id, epoch=request.epoch, kind=kind, message=text, parameter=parameter
        )
        self._port.send(client_idx, rejected)

    def _drop_gone_clients(self) -> None:
        while self._gone_clients:
            gone = self._gone_clients.pop()
            ids = [request_id for request_id, client_idx in self._clients.items() if client_idx == gone]
            self._core.abort(ids)
            for request_id in ids:
                del self._clients[request_id]

    def _send(self, deltas: list[RequestDelta]) -> None:
        by_client: dict[int, list[RequestDelta]] = {}
        for delta in deltas:
            by_client.setdefault(delta.client_idx, []).append(delta)
            if delta.finish_reason is not None:
                self._clients.pop(delta.request_id, None)
        for client_idx, its in by_client.items():
            self._send_batch(client_idx, its)

    def _send_batch(self, client_idx: int, deltas: list[RequestDelta]) -> None:
        """One message; more where it would be too large, and an error in place of a delta that is too large alone."""
        try:
            self._port.send(client_idx, Deltas(incarnation=self._incarnation, deltas=deltas, load=self._load()))
        except ProtocolError as error:
            if len(deltas) > 1:
                middle = len(deltas) // 2
                self._send_batch(client_idx, deltas[:middle])
                self._send_batch(client_idx, deltas[middle:])
                return
            ended = RequestDelta(
                request_id=deltas[0].request_id,
                epoch=deltas[0].epoch,
                finish_reason="error",
                error=Failure("limit", f"the output of one step is too large, ask for fewer logprobs: {error}"),
                client_idx=client_idx,
            )
            self._core.abort([ended.request_id])
            self._clients.pop(ended.request_id, None)
            self._send_batch(client_idx, [ended])

    def _stats(self) -> EngineStats:
        return msgspec.structs.replace(self._core.stats(), num_dropped_frames=self._port.num_dropped_frames)

    def _load(self) -> Load:
        return Load(
            num_steps=self._core.num_steps_done,
            num_running=self._core.num_running,
            num_waiting=self._core.num_waiting,
        )
