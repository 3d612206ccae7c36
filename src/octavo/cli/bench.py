"""`octavo bench ...`: measure the engine in this process or a server, with vLLM's flags and keys.

Owns: the table of benchmarks; flags, files and what is printed of those in this process.   Does not own: the
measurements (octavo/bench), the flags of `serve` and `kernels` (cli/bench_serve.py, cli/bench_kernels.py).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from octavo.cli import bench_compare, bench_constrained, bench_kernels, bench_own_server, bench_serve, bench_soak
from octavo.cli.engine_flags import add_engine_flags, config_from_args
from octavo.cli.parser import UsageError

DATASETS = ("random", "sharegpt", "custom")
RANDOM_INPUT_LEN, RANDOM_OUTPUT_LEN, CUSTOM_OUTPUT_LEN = 1024, 128, 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    table: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
        ("latency", "time of one batch, from submission to the last token", _add_latency_flags),
        ("throughput", "requests and tokens per second, all requests at once", _add_throughput_flags),
        ("workloads", "named workloads in turn, medians: for comparing engines on the same work", _add_workload_flags),
        ("constrained", "what constrained requests add to a step", bench_constrained.add_arguments),
        ("compare", "two results of `workloads` side by side, as a table and a picture", bench_compare.add_arguments),
        ("serve", "latencies and throughput of a running server, under load", bench_serve.add_arguments),
        ("serving-cost", "what a server adds to the same work offline", bench_own_server.add_cost_arguments),
        ("overload", "a server offered many times what it can do", bench_own_server.add_overload_arguments),
        ("soak", "random clients of every kind for a long time: does anything grow?", bench_soak.add_arguments),
        ("kernels", "limits of this machine and what the native kernels reach of them", bench_kernels.add_arguments),
    )
    metavar = f"{{{','.join(name for name, *_ in table)}}}"
    benchmarks = parser.add_subparsers(dest="benchmark", required=True, metavar=metavar)
    for name, summary, add_flags in table:
        add_flags(benchmarks.add_parser(name, help=summary, description=summary.capitalize() + "."))


def run(args: argparse.Namespace) -> int:
    return _ELSEWHERE.get(args.benchmark, _run_in_process)(args)


def _run_in_process(args: argparse.Namespace) -> int:
    from octavo.llm import LLM

    config = config_from_args(args)
    with LLM.from_config(config) as llm:
        report = _IN_PROCESS[args.benchmark](llm, args)
    print(report)
    if args.output_json:
        Path(args.output_json).write_text(json.dumps(report.as_json(), indent=4) + "\n", encoding="utf-8")
    return 0


def _add_common_flags(parser: argparse.ArgumentParser, **engine_defaults: object) -> None:
    parser.add_argument("--n", type=int, default=1, metavar="N", help="sequences per prompt (default: 1)")
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")
    parser.add_argument("--disable-detokenize", action="store_true", help="make no text of the output tokens")
    add_engine_flags(parser, defaults=engine_defaults)


def _add_latency_flags(parser: argparse.ArgumentParser) -> None:
    for flag, default, text in (
        ("--input-len", 32, "tokens per prompt"),
        ("--output-len", 128, "tokens per answer"),
        ("--batch-size", 8, "prompts at once"),
        ("--num-iters-warmup", 10, "iterations before the measured ones"),
        ("--num-iters", 30, "measured iterations"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{text} (default: {default})")
    # Every iteration repeats the same prompts: with cached prefixes all but the first would skip them.
    _add_common_flags(parser, enable_prefix_caching=False)


def _add_throughput_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset-name", choices=DATASETS, default="random", help="where prompts come from")
    parser.add_argument("--dataset-path", metavar="FILE", help="file of sharegpt (JSON) and custom (JSON lines)")
    parser.add_argument("--num-prompts", type=int, default=1000, metavar="N", help="requests (default: 1000)")
    parser.add_argument(
        "--input-len", "--random-input-len", type=int, metavar="N", help=f"random: default {RANDOM_INPUT_LEN}"
    )
    parser.add_argument(
        "--output-len",
        "--random-output-len",
        "--sharegpt-output-len",
        "--custom-output-len",
        type=int,
        metavar="N",
        help=f"random: default {RANDOM_OUTPUT_LEN}; custom: {CUSTOM_OUTPUT_LEN}; sharegpt: as long as the answer",
    )
    parser.add_argument(
        "--random-range-ratio", type=float, default=0.0, metavar="X", help="random: lengths vary by this share"
    )
    parser.add_argument(
        "--prefix-len", "--random-prefix-len", type=int, default=0, metavar="N", help="random: tokens shared by all"
    )
    _add_common_flags(parser)


def _add_workload_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--num-rounds", type=int, default=3, metavar="N", help="runs of each workload (default: 3)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these workloads only: single_128_128, ...")
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")
    add_engine_flags(parser)


def _run_latency(llm: Any, args: argparse.Namespace) -> Any:
    from octavo.bench.latency import LatencyOptions, run_latency

    if args.num_iters < 1:
        raise UsageError(f"--num-iters={args.num_iters}: must be at least 1")
    options = LatencyOptions(
        input_len=args.input_len,
        output_len=args.output_len,
        batch_size=args.batch_size,
        n=args.n,
        num_iters_warmup=args.num_iters_warmup,
        num_iters=args.num_iters,
        detokenize=not args.disable_detokenize,
    )
    vocab_size = llm.engine.inputs.limits.vocab_size
    return run_latency(llm.generate, options, vocab_size=vocab_size, seed=llm.config.options.model.seed)


def _run_throughput(llm: Any, args: argparse.Namespace) -> Any:
    for flag, value in (("--input-len", args.input_len), ("--output-len", args.output_len)):
        if value is not None and value < 1:
            raise UsageError(f"{flag}={value}: must be at least 1")
    if not 0.0 <= args.random_range_ratio < 1.0:
        raise UsageError(f"--random-range-ratio={args.random_range_ratio}: must be from 0 to below 1")
    from octavo.bench.throughput import run_throughput

    return run_throughput(llm.generate, _load_samples(llm, args), n=args.n, detokenize=not args.disable_detokenize)


def _load_samples(llm: Any, args: argparse.Namespace) -> Any:
    from octavo.bench.samples import RandomShape, draw_random, read_custom, read_sharegpt

    seed = llm.config.options.model.seed
    if args.dataset_name == "random":
        shape = RandomShape(
            input_len=RANDOM_INPUT_LEN if args.input_len is None else args.input_len,
            output_len=RANDOM_OUTPUT_LEN if args.output_len is None else args.output_len,
            range_ratio=args.random_range_ratio,
            prefix_len=args.prefix_len,
        )
        return draw_random(args.num_prompts, shape, vocab_size=llm.engine.inputs.limits.vocab_size, seed=seed)
    if args.dataset_path is None:
        raise UsageError(f"--dataset-name {args.dataset_name} needs --dataset-path")
    path, encode = Path(args.dataset_path), llm.get_tokenizer().encode
    if args.dataset_name == "sharegpt":
        return read_sharegpt(path, args.num_prompts, encode=encode, output_len=args.output_len, seed=seed)
    output_len = CUSTOM_OUTPUT_LEN if args.output_len is None else args.output_len
    return read_custom(path, args.num_prompts, encode=encode, output_len=output_len)


def _run_workloads(llm: Any, args: argparse.Namespace) -> Any:
    from octavo.bench.workloads import WORKLOADS, run_workloads

    known = {workload.name: workload for workload in WORKLOADS}
    unknown = [name for name in args.only or () if name not in known]
    if unknown:
        raise UsageError(f"--only {' '.join(unknown)}: choose from {', '.join(known)}")
    if args.num_rounds < 1:
        raise UsageError(f"--num-rounds={args.num_rounds}: must be at least 1")
    return run_workloads(
        llm.generate,
        [known[name] for name in args.only or known],
        num_rounds=args.num_rounds,
        vocab_size=llm.engine.inputs.limits.vocab_size,
        seed=llm.config.options.model.seed,
    )


_IN_PROCESS = {
    "latency": _run_latency,
    "throughput": _run_throughput,
    "workloads": _run_workloads,
    "constrained": bench_constrained.run,
}
"""Benchmarks of an engine in this process, by name."""
_ELSEWHERE: dict[str, Callable[[argparse.Namespace], int]] = {
    "compare": bench_compare.run,
    "serve": bench_serve.run,
    "serving-cost": bench_own_server.run_cost,
    "overload": bench_own_server.run_overload,
    "soak": bench_soak.run,
    "kernels": bench_kernels.run,
}
"""All others, by name."""
