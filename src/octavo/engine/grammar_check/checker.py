"""Grammars of requests, checked and prepared in a process that can be killed.

Owns: starting that process (helper/process.py) when it is first needed, one job at a time, one job for all who ask for
the same, whose grammar is next (turns.py), the deadline, what is said of one that the process does not survive, the
verdicts that came last.
Does not own: the checks (grammar/, in that process), the limits it puts on itself (main.py).
Invariants: a reply is never taken for another's: whatever interrupts a job ends the process, and the next job starts a
new one. A client that leaves interrupts nothing; what nobody waits for any more is not begun. On one event loop.
"""

from __future__ import annotations

import asyncio
import signal

import msgspec

from octavo.base.errors import EngineDeadError, InvariantError, OverloadedError, ValidationError
from octavo.base.log import get_logger
from octavo.config.schema import EngineConfig
from octavo.engine.grammar_check.messages import (
    Admitted,
    CheckJob,
    CheckReply,
    Ready,
    Refused,
    StartChecks,
    Unusable,
)
from octavo.engine.grammar_check.turns import SELF, Asker, FairTurns
from octavo.engine.helper.frames import frame
from octavo.engine.helper.process import HelperProcess
from octavo.grammar.verdicts import Refusal, Verdicts
from octavo.proto.structured import GrammarSpec, PreparedGrammar

logger = get_logger(__name__)

TIMEOUT_S = 10.0
"""For one job, by the clock; the process has less of processor time (main.py)."""
START_TIMEOUT_S = 60.0
"""Reading a tokenizer of 150,000 tokens takes 3 s where nothing else runs."""
WAIT_TIMEOUT_S = 60.0
"""For a job's turn."""
MAX_PENDING = 256
"""Different grammars that may wait for their turn."""
MAX_PENDING_OF_HOST = 128
"""Of those, how many may have been asked for from one host."""
VERDICT_BYTES = 4 << 20


class _Job:
    """One grammar and who waits for it. asker: who was the first to ask."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.verdict: asyncio.Future[PreparedGrammar | Refusal] = asyncio.get_running_loop().create_future()
        self.num_waiting = 0


class GrammarChecker:
    """A front end's."""

    def __init__(self, config: EngineConfig, *, timeout_s: float = TIMEOUT_S) -> None:
        self._config = config
        self._timeout_s = timeout_s
        self._verdicts = Verdicts(VERDICT_BYTES)
        self._jobs: dict[GrammarSpec, _Job] = {}
        self._process: HelperProcess[CheckReply] | None = None
        self._unusable: str | None = None
        """Why no process can check grammars for this model."""
        self._turns = FairTurns()
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(self, spec: GrammarSpec, asker: Asker = SELF) -> PreparedGrammar:
        """See GrammarBackend.prepare. Raises ValidationError also for a grammar that is stopped at the limits.

        Raises OverloadedError when too many wait, and when the process ends of something else than the grammar.
        """
        known = self._verdicts.find(spec)
        if known is not None:
            return known
        job = self._jobs.get(spec) or self._begin(spec, asker)
        job.num_waiting += 1
        try:
            verdict = await asyncio.shield(job.verdict)
        finally:
            job.num_waiting -= 1
        if isinstance(verdict, Refusal):
            raise verdict.as_error()
        return verdict

    def close(self) -> None:
        """End the process, if there is one; whoever waits is cancelled. Idempotent."""
        for task in self._tasks:
            task.cancel()
        self._end_process()

    def _begin(self, spec: GrammarSpec, asker: Asker) -> _Job:
        if len(self._jobs) >= MAX_PENDING:
            raise OverloadedError(f"{len(self._jobs)} grammars wait to be checked: the limit")
        if sum(job.asker[0] == asker[0] for job in self._jobs.values()) >= MAX_PENDING_OF_HOST:
            raise OverloadedError(f"{MAX_PENDING_OF_HOST} grammars of this client wait to be checked: the limit")
        job = self._jobs[spec] = _Job(asker)
        task = asyncio.create_task(self._run(spec, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _run(self, spec: GrammarSpec, job: _Job) -> None:
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                await self._turns.acquire(job.asker)
            try:
                verdict = await self._check(spec) if job.num_waiting else None
            finally:
                self._turns.release()
        except TimeoutError:
            _fail(job, OverloadedError(f"the grammar waited {WAIT_TIMEOUT_S:g} s for its turn to be checked"))
        except Exception as error:
            _fail(job, error)
        except asyncio.CancelledError:
            _fail(job, EngineDeadError("the server is shutting down"))
            raise
        else:
            if verdict is None:
                job.verdict.cancel()
            else:
                self._verdicts.add(spec, verdict)
                job.verdict.set_result(verdict)
        finally:
            del self._jobs[spec]

    async def _check(self, spec: GrammarSpec) -> PreparedGrammar | Refusal:
        process = await self._ready_process()
        try:
            async with asyncio.timeout(self._timeout_s):
                await process.send(frame(CheckJob.of(spec)))
                reply = await process.receive()
        except TimeoutError:
            self._end_process()
            return _stopped(spec)
        except (EOFError, OSError):
            self._end_process()
            return _after_death(process, spec)
        except BaseException:
            self._end_process()
            raise
        if isinstance(reply, Admitted):
            return reply.grammar
        if isinstance(reply, Refused):
            return Refusal(reply.message, reply.parameter, reply.pointer)
        self._end_process()
        raise InvariantError("the process that checks grammars answered out of turn")

    async def _ready_process(self) -> HelperProcess[CheckReply]:
        """The present one, or a new one that has reported. Raises OverloadedError when none comes up."""
        if self._process is not None and self._process.is_alive:
            return self._process
        self._check_usable()
        self._end_process()
        self._process = process = HelperProcess[CheckReply]("octavo.engine.grammar_check.main", CheckReply)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await process.send(frame(StartChecks(config=msgspec.Raw(msgspec.msgpack.encode(self._config)))))
                reply = await process.receive()
        except (TimeoutError, EOFError, OSError):
            self._end_process()
            raise OverloadedError("the process that checks grammars does not start") from None
        except BaseException:
            self._end_process()
            raise
        if isinstance(reply, Unusable):
            self._end_process()
            self._unusable = f"structured_outputs: this model cannot follow grammars: {reply.message}"
            self._check_usable()
        assert isinstance(reply, Ready)
        return process

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise ValidationError(self._unusable, parameter="structured_outputs")

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


def _after_death(process: HelperProcess[CheckReply], spec: GrammarSpec) -> Refusal:
    """The grammar's fault, unless somebody killed the process or it ended by itself: then raises OverloadedError."""
    code = process.exit_code
    if code is not None and code < 0 and -code != signal.SIGKILL:
        return _stopped(spec)
    logger.warning("the process that checks grammars ended in the middle of a check (exit code %s)", code)
    raise OverloadedError("the process that checks grammars has ended in the middle of the check; try again")


def _stopped(spec: GrammarSpec) -> Refusal:
    logger.warning("the check of a request's grammar was stopped at its limits")
    parameter = f"structured_outputs.{spec.kind}"
    return Refusal(f"{parameter}: checking it takes more time or memory than it may; simplify it", parameter, None)


def _fail(job: _Job, error: Exception) -> None:
    if job.num_waiting:
        job.verdict.set_exception(error)
    else:
        job.verdict.cancel()
