"""A soak: random clients of every kind for a long time, and readings of what the server takes.

Owns: the order of things: kinds, warm-up, quiet readings, the end.   Does not own: any of them.
Readings are taken every `sample_s` under load, and quiet ones NUM_QUIET times, evenly: clients finish what they do,
and wait. The first quiet one, after the warm-up, is what the others are compared with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo.base.clock import Clock, MonotonicClock
from octavo.base.errors import OctavoError
from octavo.bench.serve.client import HttpClient, Target
from octavo.bench.serve.sender import find_model
from octavo.bench.server.process import ServerProcess
from octavo.bench.soak.load import SoakLoad, find_kinds
from octavo.bench.soak.requests import RequestMix
from octavo.bench.soak.verdict import SoakResult
from octavo.bench.soak.watch import Reading, take_reading

NUM_QUIET = 6
WARMUP_SHARE = 0.1
SETTLE_S, SETTLE_POLL_S = 2.0, 0.1
"""How long, after the last client's end, requests and connections of clients that went away may still be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions:
    """How long, how many, how often."""

    duration_s: float
    concurrency: int = 16
    sample_s: float = 30.0
    max_growth_mib: float = 16.0
    skipped: tuple[str, ...] = ()
    """Kinds of requests that are left out."""
    seed: int = 0


async def run_soak(
    server: ServerProcess, options: SoakOptions, on_reading: Callable[[Reading], None] = lambda reading: None
) -> SoakResult:
    """Raises OctavoError when the server ends or answers no more."""
    clock = MonotonicClock()
    model = await _model_name(server, clock)
    kinds, missing = await find_kinds(server.port, model, options.skipped)
    load = SoakLoad(server.port, RequestMix(model, kinds), concurrency=options.concurrency, seed=options.seed)
    readings: list[Reading] = []
    start_s = clock.now_s()

    async def read(*, is_quiet: bool) -> Reading:
        if server.exit_code is not None:
            raise OctavoError(f"the server ended with {server.exit_code}:\n{server.last_log_lines()}")
        return await take_reading(
            server.pid,
            server.port,
            at_s=clock.now_s() - start_s,
            is_quiet=is_quiet,
            num_requests=sum(load.counts.values()),
        )

    def keep(reading: Reading) -> None:
        readings.append(reading)
        on_reading(reading)

    await load.start()
    for due_s in quiet_times(options.duration_s):
        while (left_s := start_s + due_s - clock.now_s()) > 0:
            await asyncio.sleep(min(left_s, options.sample_s))
            keep(await read(is_quiet=False))
        await load.pause()
        settled_s = clock.now_s() + SETTLE_S
        while not _is_settled(reading := await read(is_quiet=True), readings) and clock.now_s() < settled_s:
            await asyncio.sleep(SETTLE_POLL_S)
        keep(reading)
        load.resume()
    await load.stop()
    return SoakResult(
        readings=readings,
        counts=load.counts,
        problems=load.problems,
        missing_kinds=missing,
        max_growth_mib=options.max_growth_mib,
    )


def _is_settled(reading: Reading, earlier: Sequence[Reading]) -> bool:
    """Nothing is under way, and no connection is open that was not when it was quiet first."""
    first = next((known for known in earlier if known.is_quiet), reading)
    return reading.is_idle and reading.front_end.num_fds <= first.front_end.num_fds


def quiet_times(duration_s: float) -> list[float]:
    """When quiet readings are due: the first after the warm-up, the last at the end."""
    warmup_s = WARMUP_SHARE * duration_s
    return [warmup_s + (duration_s - warmup_s) * index / (NUM_QUIET - 1) for index in range(NUM_QUIET)]


async def _model_name(server: ServerProcess, clock: Clock) -> str:
    client = HttpClient(Target.from_url(server.url, headers={}), clock)
    try:
        return (await find_model(client, ready_timeout_s=0.0)).name
    finally:
        client.close()
