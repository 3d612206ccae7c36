"""`octavo bench serve`: load on a running server, with the flags, labels and keys of `vllm bench serve`.

Owns: environment, what is printed, exit codes.   Does not own: flags (cli/bench_serve_flags.py), the benchmark
(octavo/bench/serve).
Exit codes: 0 done, 1 when every request failed, 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.cli.bench_serve_flags import SAMPLING, TRACES, add_arguments
from octavo.cli.parser import UsageError

__all__ = ["add_arguments", "run"]
EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


def run(args: argparse.Namespace) -> int:
    from octavo.bench.serve.benchmark import run_serve
    from octavo.bench.serve.result_file import RunLabel, choose_path, parse_pairs, write_plots, write_result
    from octavo.bench.serve.timeline import parse_itl_limits

    options = _serve_options(args)
    itl_limits_s = parse_itl_limits(args.timeline_itl_thresholds)
    metadata = parse_pairs("--metadata", args.metadata)
    allow_many_connections()
    started = datetime.now()
    outcome = run_serve(options)
    report = outcome.report
    print(report, flush=True)
    label = RunLabel(
        backend=args.backend,
        label=args.label,
        model=outcome.model,
        tokenizer=outcome.tokenizer,
        num_prompts=args.num_prompts,
        arrivals=options.arrivals,
        max_concurrency=args.max_concurrency,
        started=started,
        metadata=metadata,
    )
    if args.save_result or args.append_result or args.plot_timeline:
        path = choose_path(label, args.result_dir, args.result_filename)
        if args.save_result or args.append_result:
            write_result(path, label, report, is_detailed=args.save_detailed, appends=args.append_result)
        if args.plot_timeline:
            print("\n".join(write_plots(path, label, report, itl_limits_s)), file=sys.stderr)
    if report.num_unfinished:
        return EXIT_INTERRUPTED
    return 0 if report.metrics.num_completed else EXIT_FAILED


def allow_many_connections() -> None:
    """Each open request is a socket: use all descriptors the system grants, not the 1,024 that shells start with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _serve_options(args: argparse.Namespace) -> Any:
    from octavo.bench.serve.backends import BodyOptions
    from octavo.bench.serve.benchmark import ServeOptions
    from octavo.bench.serve.client import Target
    from octavo.bench.serve.metrics import parse_goodput
    from octavo.bench.serve.result_file import parse_pairs

    headers = parse_pairs("--header", args.header)
    key = os.environ.get("OPENAI_API_KEY")
    if key and "authorization" not in map(str.lower, headers):
        headers["Authorization"] = f"Bearer {key}"
    host = f"[{args.host}]" if ":" in args.host else args.host
    sampling = {name: getattr(args, name) for name in SAMPLING if getattr(args, name) is not None}
    is_rate_given = args.request_rate != math.inf or args.ramp_up_strategy is not None
    if args.self_timed and args.dataset_name not in TRACES:
        raise UsageError(f"--self-timed: {args.dataset_name} has no times; it is for {' and '.join(TRACES)}")
    return ServeOptions(
        target=Target.from_url(args.base_url or f"http://{host}:{args.port}", headers=headers, insecure=args.insecure),
        backend=args.backend,
        endpoint=args.endpoint,
        model=args.model,
        served_model_name=args.served_model_name,
        tokenizer=args.tokenizer,
        skips_tokenizer=args.skip_tokenizer_init,
        dataset=_dataset_options(args),
        arrivals=_arrival_options(args),
        keeps_trace_times=not is_rate_given if args.self_timed is None else args.self_timed,
        max_concurrency=args.max_concurrency,
        num_warmups=args.num_warmups,
        ready_timeout_s=args.ready_check_timeout_sec,
        request_timeout_s=args.request_timeout_sec,
        body=BodyOptions(
            models=tuple(args.lora_modules),
            ignore_eos=args.ignore_eos,
            logprobs=args.logprobs,
            extra=sampling | _json_object("--extra-body", args.extra_body),
        ),
        picks_adapters_randomly=args.lora_assignment == "random",
        request_id_prefix=args.request_id_prefix or f"bench-{uuid.uuid4().hex[:8]}-",
        goodput_limits_s=parse_goodput(args.goodput),
        shown_metrics=tuple(args.percentile_metrics.split(",")),
        percentages=tuple(_numbers("--metric-percentiles", args.metric_percentiles)),
        shows_progress=not args.disable_tqdm,
    )


def _dataset_options(args: argparse.Namespace) -> Any:
    from octavo.bench.random_text import RepetitionShape
    from octavo.bench.samples import RandomShape
    from octavo.bench.serve.backends import BACKENDS as TABLE
    from octavo.bench.serve.datasets import DatasetOptions
    from octavo.bench.traces import TraceOptions

    return DatasetOptions(
        name=args.dataset_name,
        path=None if args.dataset_path is None else Path(args.dataset_path),
        num_prompts=args.num_prompts,
        seed=args.seed,
        needs_text=TABLE[args.backend].needs_text,
        output_len=args.output_len,
        random=RandomShape(
            input_len=args.random_input_len,
            output_len=args.output_len or 128,
            range_ratio=args.random_range_ratio,
            prefix_len=args.random_prefix_len,
        ),
        repetition=RepetitionShape(
            prefix_len=args.prefix_repetition_prefix_len,
            suffix_len=args.prefix_repetition_suffix_len,
            num_prefixes=args.prefix_repetition_num_prefixes,
            output_len=args.output_len or 128,
        ),
        trace=TraceOptions(
            time_scale=args.time_scale,
            max_prompt_tokens=args.trace_max_input_len,
            max_output_tokens=args.trace_max_output_len,
            block_tokens=args.trace_block_tokens,
        ),
        oversamples=not args.no_oversample,
        applies_template=not args.skip_chat_template,
    )


def _arrival_options(args: argparse.Namespace) -> Any:
    from octavo.bench.serve.arrivals import ArrivalOptions, Ramp

    ramp = None
    if args.ramp_up_strategy is not None:
        if args.ramp_up_start_rps is None or args.ramp_up_end_rps is None:
            raise UsageError("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps")
        ramp = Ramp(args.ramp_up_strategy, args.ramp_up_start_rps, args.ramp_up_end_rps)
    return ArrivalOptions(request_rate=args.request_rate, burstiness=args.burstiness, ramp=ramp)


def _json_object(flag: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError([ConfigProblem(flag, text, "must be a JSON object")])
    return found


def _numbers(flag: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError([ConfigProblem(flag, text, "must be numbers with commas between")]) from None
