"""`octavo bench serving-cost` and `octavo bench overload`: benchmarks that start a server of their own.

Owns: flags, files and what is printed; the flags that the server gets.   Does not own: the measurements
(octavo/bench/server).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo.cli.engine_flags import add_engine_flags, config_from_args, engine_kwargs
from octavo.cli.parser import UsageError


def add_cost_arguments(parser: argparse.ArgumentParser) -> None:
    _add_lengths(parser)
    parser.add_argument("--num-rounds", type=int, default=3, metavar="N", help="runs of each batch (default: 3)")
    parser.add_argument(
        "--concurrencies",
        type=int,
        nargs="+",
        default=[1, 8, 64],
        metavar="N",
        help="streams (default: 1 8 64)",
    )
    parser.add_argument("--idle-s", type=float, default=10.0, metavar="S", help="time without work (default: 10)")
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")
    add_engine_flags(parser, usage="server")


def add_overload_arguments(parser: argparse.ArgumentParser) -> None:
    _add_lengths(parser)
    for flag, kind, default, text in (
        ("--concurrency", int, 64, "requests open at the peak"),
        ("--peak-s", float, 30.0, "seconds of the peak"),
        ("--overload-s", float, 60.0, "seconds of the overload"),
        ("--factor", float, 10.0, "arrivals over what the peak completed"),
    ):
        metavar = "N" if kind is int else "X"
        parser.add_argument(flag, type=kind, default=default, metavar=metavar, help=f"{text} (default: {default:g})")
    parser.add_argument("--ttft-limit-s", type=float, metavar="S", help="later answers are no good ones")
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")
    add_engine_flags(parser, usage="server")


def run_cost(args: argparse.Namespace) -> int:
    from octavo.bench.server.cost_report import CostReport
    from octavo.bench.server.process import ServerProcess
    from octavo.bench.server.serving_cost import CostOptions, CostResult, measure_pairs, measure_start
    from octavo.bench.server.usage import read_server
    from octavo.llm import LLM

    _check_positive(args, "input_len", "output_len", "num_rounds")
    if min(args.concurrencies) < 1:
        raise UsageError("--concurrencies must be at least 1")
    config = config_from_args(args)
    with ServerProcess(server_flags(args)) as server:
        vocab_size = _vocab_size(config)
        options = CostOptions(
            input_len=args.input_len,
            output_len=args.output_len,
            num_rounds=args.num_rounds,
            concurrencies=tuple(args.concurrencies),
            idle_s=args.idle_s,
            vocab_size=vocab_size,
            seed=config.model.seed,
        )
        first_token_s, idle_cpu_s = measure_start(server, options)
        with LLM.from_config(config) as llm:
            pairs = measure_pairs(server, llm.generate, options)
        result = CostResult(
            ready_s=server.ready_s,
            first_token_s=first_token_s,
            idle_cpu_s=idle_cpu_s,
            idle_s=args.idle_s,
            pairs=pairs,
            usage=read_server(server.pid),
        )
    _show(CostReport(result), args.output_json)
    return 0


def run_overload(args: argparse.Namespace) -> int:
    import asyncio

    from octavo.bench.server.overload import OverloadOptions, measure_overload
    from octavo.bench.server.overload_report import OverloadReport
    from octavo.bench.server.process import ServerProcess
    from octavo.cli.bench_serve import allow_many_connections

    _check_positive(args, "input_len", "output_len", "concurrency", "peak_s", "overload_s", "factor")
    config = config_from_args(args)
    allow_many_connections()
    options = OverloadOptions(
        input_len=args.input_len,
        output_len=args.output_len,
        concurrency=args.concurrency,
        peak_s=args.peak_s,
        overload_s=args.overload_s,
        factor=args.factor,
        ttft_limit_s=args.ttft_limit_s,
        vocab_size=_vocab_size(config),
        seed=config.model.seed,
    )
    with ServerProcess(server_flags(args)) as server:
        result = asyncio.run(measure_overload(server, options))
    _show(OverloadReport(result), args.output_json)
    return 0


def server_flags(args: argparse.Namespace, defaults: Mapping[str, object] | None = None) -> list[str]:
    """The engine's and server's options of a command line again as words, for a process of its own."""
    words = [] if getattr(args, "config", None) is None else ["--config", args.config]
    for name, value in {**(defaults or {}), **engine_kwargs(args)}.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list | tuple):
            words += [flag, *map(str, value)]
        else:
            words.append(f"{flag}={value}")
    return words


def _add_lengths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input-len", type=int, default=256, metavar="N", help="tokens per prompt (default: 256)")
    parser.add_argument("--output-len", type=int, default=128, metavar="N", help="tokens per answer (default: 128)")


def _check_positive(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        value = getattr(args, name)
        if not value > 0:
            raise UsageError(f"--{name.replace('_', '-')}={value}: must be above 0")


def _vocab_size(config: Any) -> int:
    from octavo.loading import open_checkpoint, resolve_model

    checkpoint = open_checkpoint(resolve_model(config.model.model))
    try:
        return int(checkpoint.spec.vocab_size)
    finally:
        checkpoint.close()


def _show(report: Any, output_json: str | None) -> None:
    print(report)
    if output_json:
        Path(output_json).write_text(json.dumps(report.as_json(), indent=4) + "\n", encoding="utf-8")
