"""`octavo bench kernels`: limits of this machine, and the share of them that each native kernel reaches.

Owns: flags, and what is printed.   Does not own: the measurements (octavo/bench/kernels.py).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from octavo.cli.parser import UsageError
from octavo.config.schema import ISA_LEVELS

DEFAULT_ROWS = (1, 16, 64, 512)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", default="smollm2-135m", metavar="NAME", help="model whose sizes are measured")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="of weights and KV")
    parser.add_argument(
        "--cpu-isa",
        choices=("auto", *ISA_LEVELS),
        default="auto",
        metavar="LEVEL",
        help="level of the kernels (default: the best)",
    )
    parser.add_argument("--num-threads", type=int, metavar="N", help="threads (default: one a core)")
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=list(DEFAULT_ROWS),
        metavar="N",
        help="tokens of a step; up to 64 of as many sequences that decode, more of one prompt "
        f"(default: {' '.join(map(str, DEFAULT_ROWS))})",
    )
    parser.add_argument(
        "--context", type=int, default=512, metavar="N", help="tokens in the cache of each sequence (default: 512)"
    )
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")


def run(args: argparse.Namespace) -> int:
    from octavo.bench.kernel_shapes import SHAPES
    from octavo.bench.kernels import KernelBenchOptions, run_kernels
    from octavo.config.machine import detect_isa_levels

    if args.shape not in SHAPES:
        raise UsageError(f"--shape={args.shape}: must be one of {', '.join(SHAPES)}")
    levels = detect_isa_levels()
    if args.cpu_isa not in ("auto", *levels):
        raise UsageError(f"--cpu-isa={args.cpu_isa}: cannot run here; use {' or '.join(levels)}")
    if min(*args.rows, args.context, args.num_threads or 1) < 1:
        raise UsageError("--rows, --context and --num-threads must be at least 1")
    options = KernelBenchOptions(
        model=args.shape,
        dtype=args.dtype,
        isa=args.cpu_isa,
        num_threads=args.num_threads,
        rows=tuple(args.rows),
        context=args.context,
    )
    report = run_kernels(options)
    print(report)
    if args.output_json:
        Path(args.output_json).write_text(json.dumps(report.as_json(), indent=4) + "\n", encoding="utf-8")
    return 0
