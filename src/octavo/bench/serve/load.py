"""Sends the requests of a run when they are due, within a limit of open ones, until all have ended or an interrupt.

Owns: waiting, concurrency, interruption, the client's own cost.   Does not own: arrival times (arrivals.py), what a
request is (sender.py), what the records amount to (metrics.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.base.clock import Clock
from octavo.bench.samples import Sample
from octavo.bench.serve.record import RequestRecord


class Sender(Protocol):
    """RequestSender, or a stand-in."""

    async def send(self, sample: Sample, index: int, *, arrival_s: float) -> RequestRecord: ...


Sleep = Callable[[float], Awaitable[None]]
OnFinished = Callable[[RequestRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a run left. `records` are those of ended requests, in the order of the samples."""

    records: list[RequestRecord]
    duration_s: float
    cpu_s: float
    """CPU time of this process."""
    num_unfinished: int
    """More than 0 only after an interrupt."""
    num_open: int = 0
    """Those of them that had been sent."""


class LoadRun:
    """One run over `samples`. Each sample is taken when its request is sent, and dropped with it."""

    def __init__(
        self,
        sender: Sender,
        samples: Sequence[Sample],
        *,
        max_concurrency: int | None = None,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
        on_finished: OnFinished | None = None,
    ) -> None:
        self._sender = sender
        self._samples = samples
        self._limit = asyncio.Semaphore(max_concurrency or max(1, len(samples)))
        self._clock = clock
        self._sleep = sleep
        self._on_finished = on_finished
        self._records: dict[int, RequestRecord] = {}
        self._num_sent = 0

    async def run(self, arrivals_s: Sequence[float]) -> LoadResult:
        """Send sample i at arrivals_s[i] after now. Cancelling it once ends the run and returns what has finished."""
        start_cpu_s = time.process_time()
        start_s = self._clock.now_s()
        tasks: list[asyncio.Task[None]] = []
        try:
            for index, arrival_s in enumerate(arrivals_s):
                due_s = start_s + arrival_s
                delay_s = due_s - self._clock.now_s()
                if delay_s > 0:
                    await self._sleep(delay_s)
                tasks.append(asyncio.create_task(self._send(index, due_s)))
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            this_task = asyncio.current_task()
            assert this_task is not None
            this_task.uncancel()
        finally:
            end_s, end_cpu_s = self._clock.now_s(), time.process_time()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return LoadResult(
            records=[record for _, record in sorted(self._records.items())],
            duration_s=end_s - start_s,
            cpu_s=end_cpu_s - start_cpu_s,
            num_unfinished=len(arrivals_s) - len(self._records),
            num_open=self._num_sent - len(self._records),
        )

    async def _send(self, index: int, due_s: float) -> None:
        async with self._limit:
            self._num_sent += 1
            record = await self._sender.send(self._samples[index], index, arrival_s=due_s)
        self._records[index] = record
        if self._on_finished is not None:
            self._on_finished(record)
