"""A server offered many times what it can do: what it still completes, what it refuses and how, what it takes.

Owns: the phases peak, overload, recovery, and what is watched in them.   Does not own: sending (load.py), what is
compared with what (overload_report.py).
Peak: as many requests open as the server runs at once, always. Overload: Poisson arrivals at a multiple of the peak's
rate, whatever comes back. Recovery: all clients go away at once; one request at a time, each timed.
Lengths vary by half, so that requests do not begin and end in waves. Rates are of a window that leaves out how a phase
begins: output as the server counts it, answers as they end.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field

from octavo.base.clock import Clock, MonotonicClock
from octavo.base.errors import OctavoError
from octavo.bench.samples import RandomShape, Sample, draw_random
from octavo.bench.serve.arrivals import ArrivalOptions, draw_arrivals
from octavo.bench.serve.load import LoadResult
from octavo.bench.serve.sender import ask
from octavo.bench.server.load import BatchLoad
from octavo.bench.server.metrics_page import sum_of
from octavo.bench.server.process import ServerProcess
from octavo.bench.server.usage import Usage, read_server

LEAD_SHARE = 0.25
"""Part of a phase, at its start, that is in no rate."""
RANGE_RATIO = 0.5
PROBE_AGAIN_S, PROBE_TIMEOUT_S = 0.01, 60.0
NUM_PROMPTS = 256
"""Prompts that are drawn; the first tokens of each request are its own, so that no prefix is cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadOptions:
    """What is run. Lengths in tokens."""

    input_len: int = 256
    output_len: int = 128
    concurrency: int = 128
    """Requests open in the peak phase."""
    peak_s: float = 45.0
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
    output_tokens_per_s: float
    """As the server counts them."""
    good_share: float
    """Of the answers and failures of the window: answers in time."""
    median_ttft_s: float
    median_refusal_s: float
    client_cpu_share: float
    """CPU of the load generator, of one core."""
    front_end: list[Usage]
    engine: list[Usage]

    @property
    def good_tokens_per_s(self) -> float:
        """Output of good answers."""
        return self.output_tokens_per_s * self.good_share


@dataclass(slots=True)
class Watched:
    """What was read during a phase: usage at even intervals, and (seconds, output tokens so far) twice."""

    front_end: list[Usage] = field(default_factory=list)
    engine: list[Usage] = field(default_factory=list)
    counted: list[tuple[float, float]] = field(default_factory=list)

    @property
    def tokens_per_s(self) -> float:
        """Between the two counts; 0 without them."""
        if len(self.counted) < 2:
            return 0.0
        (start_s, before), (end_s, after) = self.counted
        return (after - before) / (end_s - start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadResult:
    """All that was measured."""

    probes_before_s: list[float]
    """TTFT of single requests to the idle server."""
    peak: Phase
    overload: Phase
    probes_after_s: list[float]
    """The same, right after the overload; the first counts from when the clients went away, refusals included."""
    offered_per_s: float


async def measure_overload(server: ServerProcess, options: OverloadOptions) -> OverloadResult:
    """All phases. Raises OctavoError when the server ends, and when single requests fail."""
    load = BatchLoad(server.url)
    try:
        await load.open()
        before_s = await _probe(load, options, seed=1)
        peak = await _run_peak(server, load, options)
        if not peak.num_completed or not peak.output_tokens_per_s:
            raise OctavoError(f"no request was completed in {options.peak_s:g} s: give it longer, or less work")
        rate = options.factor * peak.output_tokens_per_s / options.output_len
        overload = await _run_overload(server, load, options, rate)
        after_s = await _probe(load, options, seed=2)
    finally:
        load.close()
    return OverloadResult(
        probes_before_s=before_s, peak=peak, overload=overload, probes_after_s=after_s, offered_per_s=rate
    )


async def _run_peak(server: ServerProcess, load: BatchLoad, options: OverloadOptions) -> Phase:
    base = _draw(options, NUM_PROMPTS, seed=10)
    endless = (_renumbered(base[index % NUM_PROMPTS], index, options.vocab_size) for index in itertools.count())
    return await _watch(server, load, load.run_always(endless, options.concurrency), options, options.peak_s)


async def _run_overload(server: ServerProcess, load: BatchLoad, options: OverloadOptions, rate: float) -> Phase:
    count = max(1, int(rate * options.overload_s))
    arrivals_s = draw_arrivals(count, ArrivalOptions(request_rate=rate), seed=options.seed)
    base = _draw(options, NUM_PROMPTS, seed=11)
    samples = [_renumbered(base[index % NUM_PROMPTS], index, options.vocab_size) for index in range(count)]
    run = load.run(samples, arrivals_s=arrivals_s)
    return await _watch(server, load, run, options, options.overload_s)


async def _watch(
    server: ServerProcess,
    load: BatchLoad,
    run: Coroutine[None, None, LoadResult],
    options: OverloadOptions,
    seconds: float,
) -> Phase:
    """Run for so long, reading memory and tokens meanwhile; then every client goes away."""
    clock = MonotonicClock()
    watched = Watched()
    started_s = clock.now_s()
    lead_ends_s, ends_s = started_s + LEAD_SHARE * seconds, started_s + seconds
    task = asyncio.create_task(run)
    while not task.done() and (left_s := ends_s - clock.now_s()) > 0:
        await asyncio.wait([task], timeout=min(options.sample_s, left_s))
        usage = read_server(server.pid)
        watched.front_end.append(usage.front_end)
        watched.engine.append(usage.engine)
        if not watched.counted and clock.now_s() >= lead_ends_s:
            watched.counted.append(await _count_tokens(load, clock))
    watched.counted.append(await _count_tokens(load, clock))
    if not task.done():
        task.cancel()
    result = await task
    if server.exit_code is not None:
        raise OctavoError(f"the server ended with {server.exit_code}:\n{server.last_log_lines()}")
    return make_phase(result, (lead_ends_s, ends_s), options.ttft_limit_s, watched)


async def _count_tokens(load: BatchLoad, clock: Clock) -> tuple[float, float]:
    text = (await ask(load.client, "/metrics")).body.decode()
    return clock.now_s(), sum_of(text, "vllm:generation_tokens_total")


def make_phase(
    result: LoadResult, window_s: tuple[float, float], ttft_limit_s: float | None, watched: Watched
) -> Phase:
    """Counts of the whole phase; rates and the share of good answers of the window."""
    refused = [record for record in result.records if record.status in (429, 503)]
    done = [record for record in result.records if record.is_success]
    failed = [record for record in result.records if not record.is_success and record.status not in (429, 503)]
    inside = [record for record in done if window_s[0] <= record.end_s < window_s[1]]
    num_lost = sum(window_s[0] <= record.closed_s < window_s[1] for record in failed)
    num_good = sum(ttft_limit_s is None or record.ttft_s <= ttft_limit_s for record in inside)
    return Phase(
        seconds=result.duration_s,
        num_sent=len(result.records) + result.num_open,
        num_completed=len(done),
        num_refused=len(refused),
        num_refused_with_retry_after=sum(record.retry_after is not None for record in refused),
        num_failed=len(failed),
        first_failure=failed[0].error if failed else "",
        num_open_at_end=result.num_open,
        completed_per_s=len(inside) / (window_s[1] - window_s[0]),
        output_tokens_per_s=watched.tokens_per_s,
        good_share=num_good / (len(inside) + num_lost) if inside else 0.0,
        median_ttft_s=_median([record.ttft_s for record in inside]),
        median_refusal_s=_median([record.closed_s - record.start_s for record in refused]),
        client_cpu_share=result.cpu_s / result.duration_s if result.duration_s else 0.0,
        front_end=watched.front_end,
        engine=watched.engine,
    )


async def _probe(load: BatchLoad, options: OverloadOptions, *, seed: int) -> list[float]:
    """TTFT of single requests, one after the other; refusals are asked again, and count. Raises OctavoError."""
    clock = MonotonicClock()
    found_s = []
    for sample in _draw(options, options.num_probes, seed=seed):
        started_s = clock.now_s()
        while True:
            record = await load.send(Sample(sample.prompt_token_ids, 4))
            if record.is_success:
                break
            if record.status not in (429, 503) or clock.now_s() - started_s > PROBE_TIMEOUT_S:
                raise OctavoError(f"a single request failed: {record.error}")
            await asyncio.sleep(PROBE_AGAIN_S)
        found_s.append(record.start_s + record.ttft_s - started_s)
    return found_s


def _draw(options: OverloadOptions, count: int, *, seed: int) -> list[Sample]:
    shape = RandomShape(input_len=options.input_len, output_len=options.output_len, range_ratio=RANGE_RATIO)
    return draw_random(count, shape, vocab_size=options.vocab_size, seed=options.seed + seed)


def _renumbered(sample: Sample, index: int, vocab_size: int) -> Sample:
    ids = list(sample.prompt_token_ids)
    for place in range(min(2, len(ids))):
        ids[place] = index % vocab_size
        index //= vocab_size
    return Sample(ids, sample.num_output_tokens)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
