"""The template process, begun by entry.py: `... octavo.engine.template.main FD`, FD being its end of a socket pair.

Owns: its own limits: processor time and memory for each job, no files, no further processes.
Does not own: the deadline (renderer.py kills it), the sandbox and the bounds inside a template (loading/template.py).
A template that reaches a limit of the kernel ends this process, and with it only the request that sent it.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from pathlib import Path

import msgspec

from octavo.base.errors import ValidationError
from octavo.engine.template.messages import LENGTH, MAX_FRAME_BYTES, Ready, Refused, Rendered, RenderJob, frame
from octavo.loading.chat_template import ChatTemplate, TemplateOptions

CPU_S_PER_JOB = 2
MEMORY_BYTES = 512 << 20
"""Address space beyond what the process has when it starts."""


def warm_up() -> None:
    """Load what is loaded when it is first used, while files can still be opened."""
    options = TemplateOptions(chat_template="{{ strftime_now('%Y') }}{{ messages | tojson }}")
    ChatTemplate({}, {}).render([], options)


def confine() -> None:
    """Limits for the whole life of the process. Source: setrlimit(2)."""
    num_pages = int(Path("/proc/self/statm").read_text().split()[0])
    most_bytes = num_pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
        resource.setrlimit(kind, (0, 0))
    num_open = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (num_open, num_open))


def allow_cpu() -> None:
    """From here on so much more processor time; the kernel ends the process when it is used up."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit_s = int(usage.ru_utime + usage.ru_stime) + CPU_S_PER_JOB + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def render(job: RenderJob) -> Rendered | Refused:
    """What becomes of one job."""
    options = TemplateOptions(
        tools=job.tools,
        add_generation_prompt=job.add_generation_prompt,
        continue_final_message=job.continue_final_message,
        chat_template=job.template,
        variables=job.variables,
    )
    try:
        return Rendered(text=ChatTemplate({}, job.special_tokens).render(job.messages, options))
    except ValidationError as error:
        return Refused(message=str(error), parameter=error.parameter)
    except MemoryError:
        return Refused(message="chat_template: it needs more memory than it may have", parameter="chat_template")
    except Exception as error:
        # Whatever a template of a stranger's brings about is that template's fault.
        return Refused(message=f"chat_template: {type(error).__name__}: {error}", parameter="chat_template")


def answer(job: RenderJob) -> bytes:
    """The reply to a job, ready to be sent."""
    try:
        return frame(render(job))
    except (ValueError, MemoryError):
        return frame(Refused(message="chat_template: the text it makes is too long", parameter="chat_template"))


def receive(end: socket.socket) -> bytes | None:
    """The next frame; None: the other end is gone."""
    head = _receive_exactly(end, LENGTH.size)
    if head is None:
        return None
    (num_bytes,) = LENGTH.unpack(head)
    return _receive_exactly(end, num_bytes) if num_bytes <= MAX_FRAME_BYTES else None


def _receive_exactly(end: socket.socket, num_bytes: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < num_bytes:
        part = end.recv(min(1 << 20, num_bytes - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)


def main(fd: int) -> None:
    """Until the other end is gone."""
    decoder = msgspec.msgpack.Decoder(RenderJob)
    with socket.socket(fileno=fd) as end:
        end.setblocking(True)
        warm_up()
        confine()
        end.sendall(frame(Ready()))
        while (data := receive(end)) is not None:
            allow_cpu()
            end.sendall(answer(decoder.decode(data)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
