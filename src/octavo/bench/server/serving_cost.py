"""What serving adds to the engine: the same work through a server and offline, in turn, on the same cores.

Owns: the measurement.   Does not own: its report (cost_report.py), starting servers (process.py).
The offline engine lives in this process, beside the load generator, and rests while the server works; the server rests
while it works. Prompts are new in every run: no prefix is ever cached.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo.bench.samples import Generate, RandomShape, Sample, draw_random
from octavo.bench.server.load import BatchLoad, check_all_done
from octavo.bench.server.process import ServerProcess
from octavo.bench.server.usage import ServerUsage, read_server
from octavo.proto.sampling import SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions:
    """What is run. Lengths in tokens."""

    input_len: int = 256
    output_len: int = 128
    num_rounds: int = 3
    concurrencies: tuple[int, ...] = (1, 8, 64)
    idle_s: float = 10.0
    """How long the idle server is watched."""
    settle_s: float = 3.0
    """Pause before that."""
    vocab_size: int
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRun:
    """One batch through the server."""

    seconds: float
    num_tokens: int
    num_chunks: int
    ttft_s: float
    """Median."""
    token_s: float
    """Median over requests of the mean time per token behind the first."""
    client_cpu_s: float
    front_end_cpu_s: float
    engine_cpu_s: float

    @property
    def front_end_us_per_token(self) -> float:
        return 1e6 * self.front_end_cpu_s / self.num_tokens

    def tokens_per_s(self, *, without_cpu_s: float = 0.0) -> float:
        """Output tokens per second; as if so many seconds of CPU, spread over all cores, had not been needed."""
        num_cores = len(os.sched_getaffinity(0))
        return self.num_tokens / (self.seconds - without_cpu_s / num_cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRun:
    """The same batch offline."""

    seconds: float
    num_tokens: int
    token_s: float

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / self.seconds


@dataclass(slots=True)
class Pairs:
    """All rounds of one concurrency; run i of both lists was made in round i."""

    served: list[ServedRun] = field(default_factory=list)
    offline: list[OfflineRun] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostResult:
    """All that was measured."""

    ready_s: float
    """From starting the command to 200 of /readyz."""
    first_token_s: float
    """From starting the command to the first token of the first request."""
    idle_cpu_s: float
    """All processes of the server, over idle_s."""
    idle_s: float
    pairs: dict[int, Pairs]
    """By concurrency."""
    usage: ServerUsage
    """At the end."""


def measure_start(server: ServerProcess, options: CostOptions) -> tuple[float, float]:
    """Seconds from the start of the server's command to its first token, and its CPU seconds over idle_s."""

    async def first_token() -> float:
        load = BatchLoad(server.url)
        try:
            await load.open()
            record = await load.send(Sample([1] * 8, 4))
            return record.start_s + record.ttft_s - server.started_s
        finally:
            load.close()

    first_token_s = asyncio.run(first_token())
    time.sleep(options.settle_s)
    before = read_server(server.pid).total.cpu_s
    time.sleep(options.idle_s)
    return first_token_s, read_server(server.pid).total.cpu_s - before


def measure_pairs(server: ServerProcess, generate: Generate, options: CostOptions) -> dict[int, Pairs]:
    """All rounds. Which side comes first changes with each. Raises OctavoError when a request fails."""
    pairs = {concurrency: Pairs() for concurrency in options.concurrencies}
    served = _Served(server)
    try:
        # Both warm: first prompts take buffers that later ones find.
        served.run(_draw(options, max(options.concurrencies), seed=options.seed, output_len=8))
        _run_offline(generate, _draw(options, max(options.concurrencies), seed=options.seed, output_len=8))
        gc.collect()
        gc.freeze()
        for round_idx in range(options.num_rounds):
            for place, concurrency in enumerate(options.concurrencies):
                seed = options.seed + 1 + 2 * (round_idx * len(pairs) + place)
                served_samples = _draw(options, concurrency, seed=seed)
                offline_samples = _draw(options, concurrency, seed=seed + 1)
                entry = pairs[concurrency]
                if round_idx % 2:
                    entry.offline.append(_run_offline(generate, offline_samples))
                    entry.served.append(served.run(served_samples))
                else:
                    entry.served.append(served.run(served_samples))
                    entry.offline.append(_run_offline(generate, offline_samples))
    finally:
        served.close()
        gc.unfreeze()
    return pairs


class _Served:
    """The load generator, with an event loop that rests between runs."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._runner = asyncio.Runner()
        self._load = BatchLoad(server.url)
        self._runner.run(self._load.open())

    def run(self, samples: Sequence[Sample]) -> ServedRun:
        before = read_server(self._server.pid)
        result = self._runner.run(self._load.run(samples))
        after = read_server(self._server.pid)
        check_all_done(result)
        records = result.records
        return ServedRun(
            seconds=result.duration_s,
            num_tokens=sum(record.num_output_tokens or 0 for record in records),
            num_chunks=sum(record.num_token_chunks for record in records),
            ttft_s=statistics.median(record.ttft_s for record in records),
            token_s=statistics.median(record.tpot_s(record.num_output_tokens or 0) or 0.0 for record in records),
            client_cpu_s=result.cpu_s,
            front_end_cpu_s=after.without_engine.cpu_s - before.without_engine.cpu_s,
            engine_cpu_s=after.engine.cpu_s - before.engine.cpu_s,
        )

    def close(self) -> None:
        self._load.close()
        self._runner.close()


def _run_offline(generate: Generate, samples: Sequence[Sample]) -> OfflineRun:
    params = [
        SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=sample.num_output_tokens) for sample in samples
    ]
    started_s = time.perf_counter()
    outputs = generate([sample.prompt_token_ids for sample in samples], params, use_tqdm=False)
    seconds = time.perf_counter() - started_s
    return OfflineRun(
        seconds=seconds,
        num_tokens=sum(len(output.outputs[0].token_ids) for output in outputs),
        token_s=statistics.median(
            (output.metrics.last_token_time - output.metrics.first_token_time)
            / max(1, len(output.outputs[0].token_ids) - 1)
            for output in outputs
            if output.metrics and output.metrics.last_token_time and output.metrics.first_token_time
        ),
    )


def _draw(options: CostOptions, count: int, *, seed: int, output_len: int | None = None) -> list[Sample]:
    shape = RandomShape(input_len=options.input_len, output_len=output_len or options.output_len)
    return draw_random(count, shape, vocab_size=options.vocab_size, seed=seed)
