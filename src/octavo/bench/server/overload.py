"""A server offered many times what it can do: what it still completes, what it refuses and how, what it takes.

Owns: the phases peak, overload, recovery, and what is watched in them.   Does not own: sending (load.py), what is
compared with what (overload_report.py).
Peak: as many requests open as the server runs at once, always. Overload: Poisson arrivals at a multiple of the peak's
rate, whatever comes back. Recovery: all clients go away at once; one request at a time, each timed.
Rates are of answers completed inside a window that leaves out how a phase begins and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from octavo.base.clock import MonotonicClock
from octavo.base.errors import OctavoError
from octavo.bench.samples import RandomShape, Sample, draw_random
from octavo.bench.serve.arrivals import ArrivalOptions, draw_arrivals
from octavo.bench.serve.load import LoadResult
from octavo.bench.serve.record import RequestRecord
from octavo.bench.server.load import BatchLoad
from octavo.bench.server.process import ServerProcess
from octavo.bench.server.usage import Usage, read_server

LEAD_SHARE = 0.25
"""Part of a phase, at its start, that is in no rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadOptions:
    """What is run. Lengths in tokens."""

    input_len: int = 256
    output_len: int = 128
    concurrency: int = 64
    """Requests open in the peak phase."""
    peak_s: float = 30.0
    overload_s: float = 60.0
    factor: float = 10.0
    """Arrivals per second over the peak's completions per second."""
    num_probes: int = 5
    sample_s: float = 1.0
    """How often memory is read."""
    vocab_size: int
    seed: int = 0
    ttft_limit_s: float | None = None
    """An answer whose first token took longer is no good one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Rates over the window of one phase."""

    seconds: float
    num_sent: int
    num_completed: int
    num_refused: int
    """429 or 503."""
    num_refused_with_retry_after: int
    num_failed: int
    """Neither completed nor refused."""
    first_failure: str
    num_open_at_end: int
    completed_per_s: float
    good_per_s: float
    good_tokens_per_s: float
    median_ttft_s: float
    median_refusal_s: float
    client_cpu_share: float
    """CPU of the load generator, of one core."""
    front_end: list[Usage]
    engine: list[Usage]

    @property
    def refused_share(self) -> float:
        return self.num_refused / self.num_sent if self.num_sent else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadResult:
    """All that was measured."""

    probes_before_s: list[float]
    """TTFT of single requests to the idle server."""
    peak: Phase
    overload: Phase
    probes_after_s: list[float]
    """The same, right after the overload."""
    offered_per_s: float


async def measure_overload(server: ServerProcess, options: OverloadOptions) -> OverloadResult:
    """All phases. Raises OctavoError when the server ends, and when single requests fail."""
    load = BatchLoad(server.url)
    try:
        await load.open()
        before_s = await _probe(load, options, seed=1)
        peak = await _run_peak(server, load, options)
        if not peak.completed_per_s:
            raise OctavoError(f"no request was completed in {options.peak_s:g} s: give it longer, or less work")
        rate = options.factor * peak.completed_per_s
        overload = await _run_overload(server, load, options, rate)
        after_s = await _probe(load, options, seed=2)
    finally:
        load.close()
    return OverloadResult(
        probes_before_s=before_s, peak=peak, overload=overload, probes_after_s=after_s, offered_per_s=rate
    )


async def _run_peak(server: ServerProcess, load: BatchLoad, options: OverloadOptions) -> Phase:
    # More than can be done: the phase ends by its time.
    samples = _draw(options, int(options.concurrency * (2 + 2 * options.peak_s)), seed=10)
    run = load.run(samples, max_concurrency=options.concurrency)
    return await _watch(server, run, options, options.peak_s)


async def _run_overload(server: ServerProcess, load: BatchLoad, options: OverloadOptions, rate: float) -> Phase:
    count = max(1, int(rate * options.overload_s))
    arrivals_s = draw_arrivals(count, ArrivalOptions(request_rate=rate), seed=options.seed)
    # Prompts of a few hundred requests are enough to draw from: prefixes that come again are answered from the cache,
    # so each sample's first tokens are made its own.
    base = _draw(options, min(count, 256), seed=11)
    samples = [_renumbered(base[index % len(base)], index, options.vocab_size) for index in range(count)]
    run = load.run(samples, arrivals_s=arrivals_s)
    return await _watch(server, run, options, options.overload_s)


async def _watch(
    server: ServerProcess, run: Coroutine[None, None, LoadResult], options: OverloadOptions, seconds: float
) -> Phase:
    """Run for so long, reading memory meanwhile; then every client goes away."""
    clock = MonotonicClock()
    started_s = clock.now_s()
    task = asyncio.create_task(run)
    front_end, engine = [], []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not task.done():
                await asyncio.wait([task], timeout=options.sample_s)
                usage = read_server(server.pid)
                front_end.append(usage.front_end)
                engine.append(usage.engine)
    if not task.done():
        task.cancel()
    result = await task
    if server.exit_code is not None:
        raise OctavoError(f"the server ended with {server.exit_code}:\n{server.last_log_lines()}")
    length_s = min(seconds, result.duration_s)
    window = (started_s + LEAD_SHARE * length_s, started_s + length_s)
    return make_phase(result, window, options.ttft_limit_s, front_end, engine)


def make_phase(
    result: LoadResult,
    window_s: tuple[float, float],
    ttft_limit_s: float | None,
    front_end: list[Usage],
    engine: list[Usage],
) -> Phase:
    """Counts of the whole phase; rates of the answers that ended inside the window."""
    done = [record for record in result.records if record.is_success]
    refused = [record for record in result.records if record.status in (429, 503)]
    failed = [record for record in result.records if not record.is_success and record.status not in (429, 503)]
    inside = [record for record in done if window_s[0] <= record.end_s < window_s[1]]
    good = [record for record in inside if ttft_limit_s is None or record.ttft_s <= ttft_limit_s]
    length_s = max(1e-9, window_s[1] - window_s[0])
    return Phase(
        seconds=result.duration_s,
        num_sent=len(result.records) + result.num_open,
        num_completed=len(done),
        num_refused=len(refused),
        num_refused_with_retry_after=sum(record.retry_after is not None for record in refused),
        num_failed=len(failed),
        first_failure=failed[0].error if failed else "",
        num_open_at_end=result.num_open,
        completed_per_s=len(inside) / length_s,
        good_per_s=len(good) / length_s,
        good_tokens_per_s=sum(record.num_output_tokens or 0 for record in good) / length_s,
        median_ttft_s=_median([record.ttft_s for record in inside]),
        median_refusal_s=_median([record.closed_s - record.start_s for record in refused]),
        client_cpu_share=result.cpu_s / result.duration_s if result.duration_s else 0.0,
        front_end=front_end,
        engine=engine,
    )


async def _probe(load: BatchLoad, options: OverloadOptions, *, seed: int) -> list[float]:
    """TTFT of single requests, one after the other. Raises OctavoError when one fails."""
    found_s = []
    for sample in _draw(options, options.num_probes, seed=seed):
        record: RequestRecord = await load.send(Sample(sample.prompt_token_ids, 4))
        if not record.is_success:
            raise OctavoError(f"a single request failed: {record.error}")
        found_s.append(record.ttft_s)
    return found_s


def _draw(options: OverloadOptions, count: int, *, seed: int) -> list[Sample]:
    shape = RandomShape(input_len=options.input_len, output_len=options.output_len)
    return draw_random(count, shape, vocab_size=options.vocab_size, seed=options.seed + seed)


def _renumbered(sample: Sample, index: int, vocab_size: int) -> Sample:
    ids = list(sample.prompt_token_ids)
    for place in range(min(2, len(ids))):
        ids[place] = index % vocab_size
        index //= vocab_size
    return Sample(ids, sample.num_output_tokens)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
