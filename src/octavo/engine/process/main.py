"""The engine's process, begun by entry.py: `... octavo.engine.process.main FD`, FD being its end of a socket pair.

Owns: the order of the child's life, its signals, and its end when the supervisor is gone.
Does not own: when to start and end (supervisor.py), the engine itself (build.py, loop.py).
Invariants: it never outlives its supervisor, whatever state either is in: the end of the socket pair ends it at once,
after it has removed the sockets' folder, and if it is stopped then the kernel continues it for that (child.py asks for
it). Signals meant for the whole group are left to the supervisor. SIGUSR1 writes all stacks to stderr.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import socket
import sys
import threading
from pathlib import Path

import msgspec

from octavo.base.clock import MonotonicClock
from octavo.base.errors import CapacityError, ConfigError, EngineDeadError, LoadError, ModelNotFoundError
from octavo.base.interpreter import share_finely
from octavo.base.log import get_logger, setup_logging
from octavo.config.schema import EngineConfig
from octavo.engine.build import build_core
from octavo.engine.loop import EngineLoop, throughput_log
from octavo.engine.process.idle import prepare_when_idle
from octavo.engine.process.signals import STACK_SIGNAL
from octavo.engine.process.zmq_port import ZmqPort
from octavo.engine.timeline import Timeline
from octavo.proto.codec import MAX_CONTROL_BYTES, control_codec, status_codec
from octavo.proto.messages import (
    ClientGone,
    EngineFailed,
    EngineReady,
    FailedOption,
    FailureKind,
    Shutdown,
    StartEngine,
    StatusMessage,
)

logger = get_logger("octavo.engine.process.main")  # this module runs as __main__

_MAX_MESSAGE_CHARS = 8000


class Supervision:
    """The child's end of the socket pair: a thread that waits for orders and for the supervisor's end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._status_codec = status_codec()
        self._control_codec = control_codec()
        self._loop: EngineLoop | None = None
        self._socket_dir: Path | None = None

    def receive_start(self) -> StartEngine:
        """The first message. Ends the process when there is none."""
        frame = self._receive()
        if not frame:
            os._exit(1)  # whoever started us has ended, or has no use for an engine
        message = self._control_codec.decode(frame)
        if not isinstance(message, StartEngine):
            raise EngineDeadError(f"the first message was {type(message).__name__}")
        self._socket_dir = Path(message.address.removeprefix("ipc://")).parent
        threading.Thread(target=self._obey, name="octavo-supervision", daemon=True).start()
        return message

    def attach(self, loop: EngineLoop) -> None:
        """Orders are for this loop from now on."""
        self._loop = loop

    def report(self, message: StatusMessage) -> None:
        """Tell the supervisor."""
        self._channel.send(self._status_codec.encode(message))

    def _obey(self) -> None:
        while frame := self._receive():
            message = self._control_codec.decode(frame)
            if isinstance(message, ClientGone) and self._loop is not None:
                self._loop.drop_client(message.client_idx)
            elif isinstance(message, Shutdown):
                if self._loop is None:
                    os._exit(0)
                self._loop.stop()
        # The supervisor is gone and nobody will tidy up behind us.
        if self._socket_dir is not None:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
        os._exit(1)

    def _receive(self) -> bytes:
        try:
            return self._channel.recv(MAX_CONTROL_BYTES)
        except OSError:
            return b""


def run_engine(start: StartEngine, supervision: Supervision) -> None:
    """Load, report, serve until told to end. Raises what loading and the loop raise."""
    config = msgspec.msgpack.decode(start.config, type=EngineConfig)
    timeline = Timeline(MonotonicClock())
    port = ZmqPort(start.address)
    resolved, core = build_core(config, timeline, on_step_done=port.wake)
    throughput = throughput_log(is_disabled=resolved.disable_log_stats)
    loop = EngineLoop(core, port, incarnation=start.incarnation, throughput=throughput)
    # What lives as long as the engine is not to be walked by each full collection: 20 to 45 ms in the middle of a step.
    # Here alone: in a process that is the user's (LLM, an engine in a thread) the heap is not ours to freeze.
    gc.collect()
    gc.freeze()
    supervision.attach(loop)
    supervision.report(EngineReady(config=msgspec.Raw(msgspec.msgpack.encode(resolved)), phases=timeline.phases))
    logger.info("engine ready in %s", timeline)
    prepare_when_idle(core)
    loop.run()
    core.shutdown()
    port.close()


def describe_failure(error: BaseException) -> EngineFailed:
    """The same error as a message, for the supervisor to raise again."""
    kinds: dict[type[BaseException], FailureKind] = {
        ConfigError: "config",
        ModelNotFoundError: "model_not_found",
        LoadError: "load",
        CapacityError: "capacity",
    }
    matching = [kind for error_type, kind in kinds.items() if isinstance(error, error_type)]
    kind: FailureKind = matching[0] if matching else "other"
    text = str(error) if kind != "other" else f"{type(error).__name__}: {error}"
    problems = [
        FailedOption(option=p.option, value=None if p.value is None else str(p.value), remedy=p.remedy)
        for p in (error.problems if isinstance(error, ConfigError) else ())
    ]
    return EngineFailed(kind=kind, message=text[:_MAX_MESSAGE_CHARS], problems=problems)


def main(channel_fd: int) -> int:
    """Returns the exit code: 0 after an ordered end, 1 after a failure that was reported."""
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL, all_threads=True)
    share_finely()
    supervision = Supervision(socket.socket(fileno=channel_fd))
    start = supervision.receive_start()
    setup_logging(start.log_level, start.log_format)
    try:
        run_engine(start, supervision)
    except BaseException as error:
        failure = describe_failure(error)
        if failure.kind == "other":
            logger.exception("the engine cannot go on")
        supervision.report(failure)
        return 1
    return 0


if __name__ == "__main__":
    exit_code = main(int(sys.argv[1]))
    # Memory goes back to the kernel faster without the interpreter taking every object apart.
    sys.stderr.flush()
    os._exit(exit_code)
