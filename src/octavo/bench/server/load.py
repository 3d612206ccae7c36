"""Batches of random requests against a server, as the benchmarks of an own server send them.

Owns: one batch with a limit of open requests.   Does not own: sending (bench/serve), what the records amount to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

from octavo.base.clock import MonotonicClock
from octavo.base.errors import OctavoError
from octavo.bench.samples import Sample
from octavo.bench.serve.backends import BACKENDS, BodyOptions
from octavo.bench.serve.client import HttpClient, Target
from octavo.bench.serve.load import LoadResult, LoadRun
from octavo.bench.serve.record import RequestRecord
from octavo.bench.serve.sender import RequestSender, find_model

REQUEST_TIMEOUT_S = 3600.0


class BatchLoad:
    """Greedy streams of completions that ignore the end of the text. `close` it."""

    def __init__(self, url: str, *, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._clock = MonotonicClock()
        self.client = HttpClient(Target.from_url(url, headers={}), self._clock)
        self._timeout_s = timeout_s
        self._sender: RequestSender | None = None

    async def open(self) -> None:
        """Ask the server for its model. Raises ServerError."""
        served = await find_model(self.client, ready_timeout_s=0.0)
        self._sender = RequestSender(
            self.client,
            BACKENDS["octavo"],
            BodyOptions(models=(served.name,), ignore_eos=True, extra={"temperature": 0}),
            clock=self._clock,
            request_id_prefix="bench-",
            timeout_s=self._timeout_s,
        )

    async def run(
        self, samples: Sequence[Sample], *, max_concurrency: int | None = None, arrivals_s: Sequence[float] = ()
    ) -> LoadResult:
        """All at once within the limit, or at their times."""
        assert self._sender is not None, "open it first"
        run = LoadRun(self._sender, samples, max_concurrency=max_concurrency, clock=self._clock)
        return await run.run(arrivals_s or [0.0] * len(samples))

    async def run_always(self, samples: Iterator[Sample], concurrency: int) -> LoadResult:
        """So many open at every moment, until it is cancelled (or the samples end): what has ended by then."""
        records: list[RequestRecord] = []
        num_sent = 0

        async def client() -> None:
            nonlocal num_sent
            for sample in samples:
                num_sent += 1
                records.append(await self.send(sample))

        start_s, start_cpu_s = self._clock.now_s(), time.process_time()
        clients = [asyncio.create_task(client()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*clients)
        except asyncio.CancelledError:
            this_task = asyncio.current_task()
            assert this_task is not None
            this_task.uncancel()
        duration_s, cpu_s = self._clock.now_s() - start_s, time.process_time() - start_cpu_s
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        num_open = num_sent - len(records)
        return LoadResult(
            records=records, duration_s=duration_s, cpu_s=cpu_s, num_unfinished=num_open, num_open=num_open
        )

    async def send(self, sample: Sample) -> RequestRecord:
        """One request."""
        assert self._sender is not None, "open it first"
        return await self._sender.send(sample, 0, arrival_s=0.0)

    def close(self) -> None:
        """Close its connections."""
        self.client.close()


def check_all_done(result: LoadResult) -> None:
    """Raises OctavoError, with the first reason, when a request failed."""
    failed = [record.error for record in result.records if not record.is_success]
    if failed:
        raise OctavoError(f"{len(failed)} of {len(result.records)} requests failed: {failed[0]}")
