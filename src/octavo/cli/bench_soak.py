"""`octavo bench soak`: random clients of every kind against a server of its own, for a long time.

Owns: flags, files, what is printed.   Does not own: the soak (octavo/bench/soak).
Exit codes: 0 nothing wrong, 1 something is.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from octavo.cli.bench_own_server import server_flags
from octavo.cli.engine_flags import add_engine_flags, config_from_args
from octavo.cli.parser import UsageError

SMALL_KV = {"kv_cache_memory_bytes": "64M", "max_model_len": "1024"}
"""Small enough to be full at once: what grows then is no cache. Requests are preempted, too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag, kind, default, text in (
        ("--minutes", float, 30.0, "how long"),
        ("--concurrency", int, 16, "clients at once"),
        ("--sample-s", float, 30.0, "seconds between two readings"),
        ("--max-growth-mib", float, 16.0, "memory that a process may gain"),
    ):
        metavar = "N" if kind is int else "X"
        parser.add_argument(flag, type=kind, default=default, metavar=metavar, help=f"{text} (default: {default:g})")
    parser.add_argument("--skip", nargs="+", default=[], metavar="KIND", help="requests to leave out, such as tools")
    parser.add_argument("--output-json", metavar="FILE", help="write all readings as JSON")
    parser.add_argument("--png", metavar="FILE", help="draw the readings; needs the extra `bench`")
    add_engine_flags(parser, usage="server", defaults=SMALL_KV)


def run(args: argparse.Namespace) -> int:
    import asyncio

    from octavo.bench.serve.timeline_png import has_matplotlib
    from octavo.bench.server.process import ServerProcess
    from octavo.bench.soak.plot import write_soak_png
    from octavo.bench.soak.requests import KINDS
    from octavo.bench.soak.run import SoakOptions, run_soak

    for name in ("minutes", "concurrency", "sample_s"):
        if not getattr(args, name) > 0:
            raise UsageError(f"--{name.replace('_', '-')}={getattr(args, name)}: must be above 0")
    if args.png and not has_matplotlib():
        raise UsageError("--png needs matplotlib: pip install 'octavo[bench]'")
    unknown = set(args.skip) - {kind.name for kind in KINDS}
    if unknown:
        raise UsageError(f"--skip {' '.join(sorted(unknown))}: choose from {', '.join(kind.name for kind in KINDS)}")
    config = config_from_args(args)
    options = SoakOptions(
        duration_s=60 * args.minutes,
        concurrency=args.concurrency,
        sample_s=args.sample_s,
        max_growth_mib=args.max_growth_mib,
        skipped=tuple(args.skip),
        seed=config.model.seed,
    )
    with ServerProcess(server_flags(args, SMALL_KV)) as server:
        result = asyncio.run(run_soak(server, options, lambda reading: print(reading, file=sys.stderr, flush=True)))
    print(result)
    if args.output_json:
        Path(args.output_json).write_text(json.dumps(result.as_json(), indent=4) + "\n", encoding="utf-8")
    if args.png:
        title = f"{Path(config.model.model).name}, {args.concurrency} clients, {args.minutes:g} minutes"
        write_soak_png(result, Path(args.png), title=title)
    return 1 if result.findings else 0
