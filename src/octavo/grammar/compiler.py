"""Compiles grammars away from the thread that runs steps.

Owns: a few threads (none before the first grammar, asleep when there is nothing to do), one compilation for all who
wait for the same grammar, deadlines, the cache.
Does not own: what compiling takes (the back end bounds it: a compilation that runs is not interrupted).
Invariant: whatever goes wrong in a compilation ends as the exception of the futures that wait for it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from octavo.base.errors import OverloadedError
from octavo.grammar.cache import GrammarCache
from octavo.grammar.interface import CompiledGrammar, GrammarBackend
from octavo.proto.stats import GrammarStats
from octavo.proto.structured import PreparedGrammar

NICENESS: Final = 10
"""Of the threads, where the kernel tells threads apart: behind those of a step, of which there may be one for each
processor."""


def _stand_back() -> None:
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class _Job:
    """One compilation and who waits for it."""

    def __init__(self, grammar: PreparedGrammar, deadline_s: float) -> None:
        self.grammar = grammar
        self.deadline_s = deadline_s
        self.waiting: list[Future[CompiledGrammar]] = []

    def is_wanted(self) -> bool:
        return any(not future.cancelled() for future in self.waiting)


class GrammarCompiler:
    """`submit` never blocks. A future that is cancelled drops out; what nobody waits for any more is not compiled."""

    def __init__(
        self,
        backend: GrammarBackend,
        *,
        cache: GrammarCache,
        num_threads: int = 2,
        timeout_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """timeout_s: a grammar not begun so long after it was asked for fails with OverloadedError."""
        self._backend = backend
        self._cache = cache
        self._timeout_s = timeout_s
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[PreparedGrammar, _Job] = {}
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="octavo-grammar", initializer=_stand_back)

    @property
    def num_waiting(self) -> int:
        """Compilations that were asked for and are not over."""
        return len(self._jobs)

    def submit(self, grammar: PreparedGrammar) -> Future[CompiledGrammar]:
        """The compiled grammar, at once when it is in the cache. Its exception: OverloadedError, and
        whatever the back end raises."""
        future: Future[CompiledGrammar] = Future()
        known = self._cache.get(grammar)
        if known is not None:
            future.set_result(known)
            return future
        with self._lock:
            job = self._jobs.get(grammar)
            if job is None:
                job = self._jobs[grammar] = _Job(grammar, self._clock() + self._timeout_s)
                self._pool.submit(self._run, job)
            job.waiting.append(future)
        return future

    def stats(self) -> GrammarStats:
        """Of the cache."""
        return self._cache.stats()

    def close(self) -> None:
        """Nothing more is compiled; futures that wait are cancelled."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            for future in job.waiting:
                future.cancel()

    def _run(self, job: _Job) -> None:
        with self._lock:
            if not job.is_wanted():
                self._jobs.pop(job.grammar, None)
                return
        result: CompiledGrammar | Exception
        try:
            if self._clock() > job.deadline_s:
                raise OverloadedError(
                    f"the grammar was not compiled within {self._timeout_s:g} s: too many are waiting"
                )
            result = self._backend.compile(job.grammar)
            self._cache.put(job.grammar, result)
        except Exception as error:
            result = error
        with self._lock:
            self._jobs.pop(job.grammar, None)
            waiting = job.waiting
        for future in waiting:
            _settle(future, result)


def _settle(future: Future[CompiledGrammar], result: CompiledGrammar | Exception) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
