"""The template process, begun by entry.py: `... octavo.engine.template.main FD`, FD being its end of a socket pair.

Owns: what it does with a job, the numbers of its limits.
Does not own: the limits (helper/confinement.py), the deadline (renderer.py kills it), the sandbox and the bounds inside
a template (loading/template.py).
A template that reaches a limit of the kernel ends this process, and with it only the request that sent it.
"""

from __future__ import annotations

import socket
import sys

import msgspec

from octavo.base.errors import ValidationError
from octavo.engine.helper.confinement import allow_cpu, confine
from octavo.engine.helper.frames import frame, receive
from octavo.engine.template.messages import Ready, Refused, Rendered, RenderJob
from octavo.loading.chat_template import ChatTemplate, TemplateOptions

CPU_S_PER_JOB = 2
MEMORY_BYTES = 512 << 20
"""Address space beyond what the process has when it starts."""


def warm_up() -> None:
    """Load what is loaded when it is first used, while files can still be opened."""
    options = TemplateOptions(chat_template="{{ strftime_now('%Y') }}{{ messages | tojson }}")
    ChatTemplate({}, {}).render([], options)


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


def main(fd: int) -> None:
    """Until the other end is gone."""
    decoder = msgspec.msgpack.Decoder(RenderJob)
    with socket.socket(fileno=fd) as end:
        end.setblocking(True)
        warm_up()
        confine(memory_bytes=MEMORY_BYTES)
        end.sendall(frame(Ready()))
        while (data := receive(end)) is not None:
            allow_cpu(CPU_S_PER_JOB)
            end.sendall(answer(decoder.decode(data)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
