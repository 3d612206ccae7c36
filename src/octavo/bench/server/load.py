"""Batches of random requests against a server, as the benchmarks of an own server send them.

Owns: one batch with a limit of open requests.   Does not own: sending (bench/serve), what the records amount to.
"""

from __future__ import annotations

from collections.abc import Sequence

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
