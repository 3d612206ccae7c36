"""One serving benchmark from its options to its report.

Owns: the order of things: model, prompts, readiness, warm-up, load, report.   Does not own: any of them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from octavo.base.clock import MonotonicClock
from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.samples import Sample
from octavo.bench.serve.arrivals import ArrivalOptions, draw_arrivals
from octavo.bench.serve.backends import BACKENDS, BodyOptions
from octavo.bench.serve.client import HttpClient, Target
from octavo.bench.serve.datasets import DatasetOptions, load_samples
from octavo.bench.serve.load import LoadResult, LoadRun
from octavo.bench.serve.metrics import summarize
from octavo.bench.serve.progress import ProgressLine
from octavo.bench.serve.record import RequestRecord
from octavo.bench.serve.report import METRIC_TITLES, ClientCost, ServeReport
from octavo.bench.serve.sender import RequestSender, ServedModel, find_model, read_speculation, wait_until_ready
from octavo.bench.serve.speculation import SpeculationCounters
from octavo.bench.serve.tokenizer import load_tokenizer
from octavo.bench.traces import TraceSamples
from octavo.loading import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What is run against which server."""

    target: Target
    backend: str = "openai"
    endpoint: str | None = None
    model: str | None = None
    """None: the first the server names."""
    served_model_name: str | None = None
    """Name for requests, if it is not that of the model."""
    tokenizer: str | None = None
    skips_tokenizer: bool = False
    dataset: DatasetOptions = field(default_factory=DatasetOptions)
    arrivals: ArrivalOptions = field(default_factory=ArrivalOptions)
    keeps_trace_times: bool = True
    max_concurrency: int | None = None
    num_warmups: int = 0
    ready_timeout_s: float = 0.0
    request_timeout_s: float = 6 * 3600.0
    body: BodyOptions = field(default_factory=lambda: BodyOptions(models=()))
    """Its `models` are the adapters that requests are spread over; none: the model."""
    picks_adapters_randomly: bool = True
    request_id_prefix: str = "bench-"
    goodput_limits_s: dict[str, float] = field(default_factory=dict)
    shown_metrics: tuple[str, ...] = ("ttft", "tpot", "itl")
    percentages: tuple[float, ...] = (99.0,)
    shows_progress: bool = True

    def __post_init__(self) -> None:
        problems = []
        for flag, value, least in (
            ("--max-concurrency", self.max_concurrency, 1),
            ("--num-warmups", self.num_warmups, 0),
            ("--ready-check-timeout-sec", self.ready_timeout_s, 0),
        ):
            if value is not None and not value >= least:
                problems.append(ConfigProblem(flag, value, f"must be at least {least}"))
        if not self.request_timeout_s > 0:
            problems.append(ConfigProblem("--request-timeout-sec", self.request_timeout_s, "must be above 0"))
        for name in self.shown_metrics:
            if name not in METRIC_TITLES:
                problems.append(ConfigProblem("--percentile-metrics", name, f"must be of {', '.join(METRIC_TITLES)}"))
        for percentage in self.percentages:
            if not 0 <= percentage <= 100:
                problems.append(ConfigProblem("--metric-percentiles", percentage, "must be from 0 to 100"))
        if problems:
            raise ConfigError(problems)


@dataclass(frozen=True, slots=True)
class ServeOutcome:
    """The report, and what the names turned out to be."""

    report: ServeReport
    model: str
    tokenizer: str


def run_serve(options: ServeOptions) -> ServeOutcome:
    """Run the benchmark. Ctrl-C while requests are sent ends it, and reports what has finished; a second ends at once.

    Raises ConfigError for options that do not go together, ServerError for a server that is not there.
    """
    with asyncio.Runner() as runner:
        client = HttpClient(options.target, MonotonicClock())
        try:
            served = _named(options) or runner.run(find_model(client, ready_timeout_s=options.ready_timeout_s))
            tokenizer_name = options.tokenizer or served.root
            tokenizer = None if options.skips_tokenizer else load_tokenizer(tokenizer_name)
            samples = load_samples(options.dataset, tokenizer)
            arrivals_s = _arrivals(samples, options)
            sender = _make_sender(client, options, options.served_model_name or served.name, len(samples))
            # What is there now stays to the end: the collector need not look at it again while requests are timed.
            gc.collect()
            gc.freeze()
            result, speculation = runner.run(_run(client, sender, samples, arrivals_s, options))
        finally:
            client.close()
            gc.unfreeze()
    return ServeOutcome(_make_report(result, speculation, options, tokenizer), served.root, tokenizer_name)


async def _run(
    client: HttpClient,
    sender: RequestSender,
    samples: Sequence[Sample],
    arrivals_s: Sequence[float],
    options: ServeOptions,
) -> tuple[LoadResult, SpeculationCounters | None]:
    clock = MonotonicClock()
    if options.ready_timeout_s:
        await wait_until_ready(sender, samples[0], timeout_s=options.ready_timeout_s)
    if options.num_warmups:
        warmups = [samples[0]] * options.num_warmups
        warmup = LoadRun(sender, warmups, max_concurrency=options.max_concurrency, clock=clock)
        if (await warmup.run([0.0] * options.num_warmups)).num_unfinished:
            raise asyncio.CancelledError
    before = await read_speculation(client)
    with ProgressLine(len(samples), is_shown=options.shows_progress) as progress:
        run = LoadRun(
            sender,
            samples,
            max_concurrency=options.max_concurrency,
            clock=clock,
            on_finished=progress.on_finished,
        )
        result = await run.run(arrivals_s)
    after = await read_speculation(client) if before is not None else None
    return result, after.since(before) if before is not None and after is not None else None


def _named(options: ServeOptions) -> ServedModel | None:
    return None if options.model is None else ServedModel(options.model, options.model)


def _arrivals(samples: Sequence[Sample], options: ServeOptions) -> list[float]:
    if isinstance(samples, TraceSamples) and options.keeps_trace_times:
        return samples.arrivals_s
    return draw_arrivals(len(samples), options.arrivals, seed=options.dataset.seed)


def _make_sender(client: HttpClient, options: ServeOptions, model: str, num_requests: int) -> RequestSender:
    adapters = options.body.models or (model,)
    if options.picks_adapters_randomly and len(adapters) > 1:
        picks = np.random.default_rng(options.dataset.seed).integers(0, len(adapters), num_requests)
        adapters = tuple(adapters[pick] for pick in picks)
    body = BodyOptions(
        models=adapters, ignore_eos=options.body.ignore_eos, logprobs=options.body.logprobs, extra=options.body.extra
    )
    return RequestSender(
        client,
        BACKENDS[options.backend],
        body,
        endpoint=options.endpoint,
        clock=MonotonicClock(),
        request_id_prefix=options.request_id_prefix,
        timeout_s=options.request_timeout_s,
    )


def _make_report(
    result: LoadResult, speculation: SpeculationCounters | None, options: ServeOptions, tokenizer: Tokenizer | None
) -> ServeReport:
    def count_tokens(record: RequestRecord) -> int:
        if tokenizer is None:
            return record.num_token_chunks
        return len(tokenizer.encode(record.text, add_special_tokens=False))

    metrics = summarize(
        result.records,
        duration_s=result.duration_s,
        goodput_limits_s=options.goodput_limits_s,
        count_tokens=count_tokens,
    )
    return ServeReport(
        metrics=metrics,
        records=result.records,
        cost=ClientCost(cpu_s=result.cpu_s, num_chunks=sum(record.num_chunks for record in result.records)),
        has_goodput=bool(options.goodput_limits_s),
        request_rate=options.arrivals.request_rate,
        max_concurrency=options.max_concurrency,
        num_unfinished=result.num_unfinished,
        speculation=speculation,
        shown_metrics=options.shown_metrics,
        percentages=options.percentages,
    )
