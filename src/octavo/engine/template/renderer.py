"""Templates of requests, rendered in a process that can be killed.

Owns: starting that process (helper/process.py) when it is first needed, one job at a time, the deadline, its end.
Does not own: the limits it puts on itself (main.py), whether such templates are accepted at all (preparation.py).
Invariants: whatever interrupts a job (its deadline, a client that leaves) ends the process, so that no reply is ever
taken for another's; the next job starts a new one. On one event loop.
"""

from __future__ import annotations

import asyncio

from octavo.base.errors import OverloadedError, ValidationError
from octavo.base.log import get_logger
from octavo.engine.helper.frames import frame
from octavo.engine.helper.process import HelperProcess
from octavo.engine.template.messages import Refused, Rendered, RenderJob, TemplateReply

logger = get_logger(__name__)


TIMEOUT_S = 4.0
"""For one job, by the clock; the process has less of processor time (main.py)."""
START_TIMEOUT_S = 20.0
MAX_PENDING = 32
"""Jobs that may wait for their turn."""


class TemplateRenderer:
    """A front end's."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._process: HelperProcess[TemplateReply] | None = None
        self._turn = asyncio.Lock()
        self._num_pending = 0

    async def render(self, job: RenderJob) -> str:
        """The text. Raises ValidationError for a template at fault, OverloadedError when too many jobs wait."""
        if self._num_pending >= MAX_PENDING:
            raise OverloadedError(f"{self._num_pending} chat templates wait to be rendered: the limit")
        self._num_pending += 1
        try:
            async with self._turn:
                return await self._render(job)
        finally:
            self._num_pending -= 1

    async def _render(self, job: RenderJob) -> str:
        process = await self._ready_process()
        try:
            reply = await asyncio.wait_for(self._ask(process, job), self._timeout_s)
        except (TimeoutError, EOFError, OSError):
            self.close()
            logger.warning("a request's chat template was stopped at its limits")
            raise ValidationError(
                "chat_template: stopped, it takes more time or memory than a template may; simplify it",
                parameter="chat_template",
            ) from None
        except BaseException:
            self.close()
            raise
        if isinstance(reply, Rendered):
            return reply.text
        if isinstance(reply, Refused):
            raise ValidationError(reply.message, parameter=reply.parameter)
        self.close()
        raise ValidationError("chat_template: its process answered out of turn", parameter="chat_template")

    async def _ask(self, process: HelperProcess[TemplateReply], job: RenderJob) -> TemplateReply:
        try:
            data = frame(job)
        except ValueError as error:
            raise ValidationError(f"messages: too long to be rendered: {error}", parameter="messages") from None
        await process.send(data)
        return await process.receive()

    async def _ready_process(self) -> HelperProcess[TemplateReply]:
        """The present one, or a new one that has reported. Raises OverloadedError when none comes up."""
        if self._process is not None and self._process.is_alive:
            return self._process
        self.close()
        process: HelperProcess[TemplateReply] = HelperProcess("octavo.engine.template.main", TemplateReply)
        self._process = process
        try:
            await asyncio.wait_for(process.receive(), START_TIMEOUT_S)
        except (TimeoutError, EOFError, OSError):
            self.close()
            raise OverloadedError("the process for chat templates of requests does not start") from None
        except BaseException:
            self.close()
            raise
        return process

    def close(self) -> None:
        """End the process, if there is one. The next job starts another."""
        if self._process is not None:
            self._process.kill()
            self._process = None
