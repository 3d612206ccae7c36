"""Between the streams of a front end and its engine, over the engine's deaths.

Owns: the engine's state as seen from here, which requests the present engine has, their order.
Does not own: the connection (a link), texts (outputs.py), when to restart (supervisor.py), watching (watch.py), what
becomes of a request at its engine's death (replay.py). What comes while no engine is up waits for the next one.
One event loop; nothing here blocks it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from octavo.base.clock import Clock
from octavo.base.errors import CapacityError, EngineDeadError, OctavoError, ValidationError
from octavo.base.log import get_logger
from octavo.engine.front.calls import Calls
from octavo.engine.front.link import EngineLink, ProgressListener
from octavo.engine.front.replay import note_death, replay_messages
from octavo.engine.front.streams import OutputStream, StreamTable
from octavo.engine.input.queue_count import QueueCount
from octavo.engine.process.supervisor import RunningEngine
from octavo.fault.state import EngineEvent, EngineState, next_state
from octavo.proto.codec import ProtocolError
from octavo.proto.failure import Failure
from octavo.proto.messages import (
    Abort,
    Add,
    ClientMessage,
    Deltas,
    EngineMessage,
    Load,
    Ping,
    Pong,
    Rejected,
    ResetReply,
    StatsReply,
)
from octavo.proto.output import FinishReason, RequestDelta

logger = get_logger(__name__)

DEADLINE_GRACE_S = 0.25
"""The engine ends a request at its deadline; the front end does so much later, where the engine cannot."""


class Dispatcher:
    """A LinkListener. `attach` the link before anything else."""

    def __init__(
        self,
        clock: Clock,
        *,
        replay: bool,
        queue: QueueCount | None = None,
        on_dropped_frame: Callable[[], None] | None = None,
    ) -> None:
        self.state = EngineState.STARTING
        self.cause: str | None = None
        """Why the engine is dead, or why it last died."""
        self.num_restarts = 0
        self.streams = StreamTable(queue or QueueCount())
        self.running: RunningEngine | None = None
        """The last engine that was up."""
        self._clock = clock
        self._replay = replay
        self._on_dropped_frame = on_dropped_frame
        self._link: EngineLink | None = None
        self._watch: ProgressListener | None = None
        self._is_up = False
        self._calls = Calls(self._send)
        self._died = asyncio.Event()

    def attach(self, link: EngineLink, watch: ProgressListener) -> None:
        """Through this link from now on."""
        self._link, self._watch = link, watch

    def note(self, event: EngineEvent) -> None:
        """Something happened to the engine."""
        before, self.state = self.state, next_state(self.state, event)
        if self.state is not before:
            logger.info("engine: %s -> %s (%s)", before.value, self.state.value, event.name.lower())
        if self.state is EngineState.DEAD:
            self._died.set()

    async def wait_dead(self) -> None:
        """Return once the engine is dead for good."""
        await self._died.wait()

    # ---- requests ---------------------------------------------------------------------------------------------------

    def check_admission(self) -> None:
        """Raises EngineDeadError where a request would never be served."""
        if not self.state.takes_requests:
            reason = f": {self.cause}" if self.cause else ""
            raise EngineDeadError(f"the engine is {self.state.value} and takes no requests{reason}")

    def open(self, stream: OutputStream) -> None:
        """Start a request. Raises EngineDeadError, and ValidationError for one that is too large to send."""
        self.check_admission()
        had_work = bool(self.streams)
        self.streams.add(stream)
        deadline_s = stream.live.request.sequences[0].deadline_s
        if deadline_s is not None:
            delay_s = max(0.0, deadline_s - self._clock.now_s()) + DEADLINE_GRACE_S
            stream.deadline_timer = asyncio.get_running_loop().call_later(delay_s, self._expire, stream)
        if self._is_up:
            try:
                self._submit(stream, [Add(request=sequence) for sequence in stream.live.request.sequences])
            except ProtocolError as error:
                self._stop_in_engine(stream)
                self.streams.remove(stream)
                raise ValidationError(f"the request is too large: {error}", parameter="prompt") from None
            if not had_work:
                self._begin_watch()

    def _submit(self, stream: OutputStream, messages: Iterable[ClientMessage]) -> None:
        stream.is_submitted = True
        for message in messages:
            self._send(message)

    def _send(self, message: ClientMessage) -> None:
        assert self._link is not None
        self._link.send(message)

    def _begin_watch(self) -> None:
        if self._watch is not None:
            self._watch.work_began()

    def leave(self, stream: OutputStream) -> None:
        """Its consumer has gone: nothing of it remains here or in the engine. Idempotent."""
        if stream in self.streams:
            stream.live.leave()
            self._stop_in_engine(stream)
            self.streams.remove(stream)

    def abort(self, request_ids: Iterable[str]) -> None:
        """End requests by name; their consumers get a last output."""
        for stream in self.streams.named(request_ids):
            self._end(stream, "abort", None)

    def fail_all(self, error: Failure) -> None:
        """End every request with an error."""
        for stream in self.streams:
            self._end(stream, "error", error)

    def _expire(self, stream: OutputStream) -> None:
        self._end(stream, "error", Failure("deadline", "the deadline has passed"))

    def _end(self, stream: OutputStream, reason: FinishReason, error: Failure | None) -> None:
        self._stop_in_engine(stream)
        stream.end(reason, self._clock.now_s(), error)
        self.streams.remove(stream)

    def _stop_in_engine(self, stream: OutputStream) -> None:
        if self._is_up and stream.is_submitted:
            live = stream.live
            ids = [
                sequence.request_id
                for sequence, continuation in zip(live.request.sequences, live.continuations, strict=True)
                if continuation.finish_reason is None
            ]
            if ids:
                self._send(Abort(request_ids=ids))

    # ---- calls ------------------------------------------------------------------------------------------------------

    async def call(self, make: Callable[[int], ClientMessage], timeout_s: float) -> EngineMessage:
        """Send a message that is answered, and wait for the answer. Raises EngineDeadError."""
        if not self._is_up:
            raise EngineDeadError(f"the engine is {self.state.value}: {self.cause}")
        return await self._calls.call(make, timeout_s)

    def ping(self) -> None:
        """Ask the engine for a sign of life; its answer goes to the watch."""
        if self._is_up:
            self._send(Ping(call_id=self._calls.new_id()))

    # ---- from the engine --------------------------------------------------------------------------------------------

    def receive(self, message: EngineMessage) -> None:
        """See LinkListener."""
        match message:
            case Deltas():
                self._hear(message.load)
                if self.running is not None and message.incarnation == self.running.incarnation:
                    self._apply(message.deltas)
            case Rejected():
                self._refuse(message)
            case Pong():
                self._hear(message.load)
                self._calls.answer(message.call_id, message)
            case StatsReply() | ResetReply():
                self._calls.answer(message.call_id, message)

    def note_dropped_frame(self, why: str) -> None:
        """See LinkListener."""
        logger.error("dropped a frame of the engine: %.300s", why)
        if self._on_dropped_frame is not None:
            self._on_dropped_frame()

    def _hear(self, load: Load) -> None:
        if self._watch is not None:
            self._watch.heard(load)

    def _apply(self, deltas: list[RequestDelta]) -> None:
        now_s = self._clock.now_s()
        stopped: list[str] = []
        for delta in deltas:
            found = self.streams.find(delta.request_id, delta.epoch)
            if found is None:
                continue
            stream, index = found
            self.streams.note_started(stream)
            stopped += stream.apply(index, delta, now_s)
            if stream.is_ended:
                self.streams.remove(stream)
        if stopped:
            self._send(Abort(request_ids=stopped))

    def _refuse(self, message: Rejected) -> None:
        found = self.streams.find(message.request_id, message.epoch)
        if found is None:
            return
        stream, _ = found
        errors: dict[str, OctavoError] = {
            "validation": ValidationError(message.message, parameter=message.parameter),
            "capacity": CapacityError(message.message),
        }
        error = errors.get(message.kind)
        if error is None or stream.is_started:
            self._end(stream, "error", Failure("internal", message.message))
            return
        self._stop_in_engine(stream)
        stream.refuse(error)
        self.streams.remove(stream)

    # ---- the engine's life ------------------------------------------------------------------------------------------

    def engine_up(self, engine: RunningEngine) -> None:
        """See EngineListener. What waits is submitted, in order of arrival."""
        self.num_restarts += self.running is not None
        self.running = engine
        self._is_up = True
        self.note(EngineEvent.READY)
        for stream in self.streams:
            try:
                self._submit(stream, replay_messages(stream))
            except ProtocolError as error:
                self._end(stream, "error", Failure("internal", f"it cannot be sent to the engine again: {error}"))
        if self.streams:
            self._begin_watch()

    def engine_down(self, cause: str, *, is_in_row: bool) -> None:
        """See EngineListener."""
        self._lose(cause)
        self.note(EngineEvent.DEATH)
        for stream in self.streams:
            error = note_death(stream, cause, is_in_row=is_in_row, is_replayed=self._replay)
            if error is not None:
                self._end(stream, "error", error)

    def engine_restarting(self) -> None:
        """See EngineListener."""
        self.note(EngineEvent.RESTART)

    def engine_dead(self, cause: str) -> None:
        """See EngineListener."""
        self._lose(cause)
        self.note(EngineEvent.GIVE_UP)
        self.fail_all(Failure("internal", f"the engine is dead: {cause}"))

    def _lose(self, cause: str) -> None:
        self._is_up = False
        self.cause = cause
        self._calls.fail_all(cause)

    def close(self) -> None:
        """The engine is being stopped on purpose."""
        with contextlib.suppress(OctavoError):
            self.fail_all(Failure("limit", "the engine was shut down"))
        self._lose("it was shut down")
        self.note(EngineEvent.STOPPED)
