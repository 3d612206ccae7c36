"""The grammar process, begun by entry.py: `... octavo.engine.grammar_check.main FD`, FD being its end of a socket pair.

Owns: what it does with a job, the numbers of its limits.
Does not own: the limits (helper/confinement.py), the deadline (checker.py kills it), the checks (grammar/).
A grammar that reaches a limit of the kernel ends this process, and with it only the request that sent it.
"""

from __future__ import annotations

import os
import socket
import sys

import msgspec

from octavo.base.errors import OctavoError, ValidationError
from octavo.base.memory import return_freed_memory
from octavo.config.schema import EngineConfig
from octavo.engine.grammar_check.messages import Admitted, CheckJob, Ready, Refused, StartChecks, Unusable
from octavo.engine.grammars import LazyBackend
from octavo.engine.helper.confinement import allow_cpu, confine
from octavo.engine.helper.frames import frame, receive
from octavo.engine.input.front_parts import make_grammar_backend, read_vocabulary
from octavo.proto.structured import GrammarSpec

CPU_S_PER_JOB = 1
"""Whole seconds, and up to one more: three times what the limits of grammars allow (grammar/limits.py)."""
MEMORY_BYTES = 512 << 20
"""Address space beyond what the process has when it starts."""
NICENESS = 5
"""Behind the threads of a step, where processors are few; never so far that a check stands still."""
WARM_UP = (
    GrammarSpec("json", '{"type":"object","properties":{"a":{"type":"string","pattern":"^a"}}}'),
    GrammarSpec("grammar", 'root ::= "a"'),
)
"""What these load when they are first used is loaded while files can still be opened."""


def make_backend(start: StartChecks) -> LazyBackend:
    """Over the vocabulary of that model, and warm. Raises LoadError, ConfigError, ValidationError."""
    config = msgspec.msgpack.decode(start.config, type=EngineConfig)
    backend = make_grammar_backend(lambda: read_vocabulary(config))
    for spec in WARM_UP:
        backend.compile(backend.prepare(spec))
    return backend


def answer(backend: LazyBackend, job: CheckJob) -> bytes:
    """The reply to a job, ready to be sent."""
    try:
        return frame(Admitted(grammar=backend.prepare(job.spec)))
    except ValidationError as error:
        pointer = error.value if isinstance(error.value, str) else None
        return frame(Refused(message=str(error), parameter=error.parameter, pointer=pointer))
    except MemoryError:
        parameter = f"structured_outputs.{job.kind}"
        message = f"{parameter}: checking it needs more memory than it may have"
        return frame(Refused(message=message, parameter=parameter, pointer=None))


def main(fd: int) -> None:
    """Until the other end is gone."""
    with socket.socket(fileno=fd) as end:
        end.setblocking(True)
        first = receive(end)
        if first is None:
            return
        try:
            backend = make_backend(msgspec.msgpack.decode(first, type=StartChecks))
        except OctavoError as error:
            end.sendall(frame(Unusable(message=str(error))))
            return
        return_freed_memory()
        os.nice(NICENESS)
        confine(memory_bytes=MEMORY_BYTES)
        end.sendall(frame(Ready()))
        decoder = msgspec.msgpack.Decoder(CheckJob)
        while (data := receive(end)) is not None:
            allow_cpu(CPU_S_PER_JOB)
            end.sendall(answer(backend, decoder.decode(data)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
