"""`octavo bench constrained`: what constrained requests add to a step.

Owns: its flags.   Does not own: the measurement (octavo/bench/constrained.py).
"""

from __future__ import annotations

import argparse
from typing import Any

from octavo.cli.engine_flags import add_engine_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag, default, text in (
        ("--num-constrained", 32, "requests that are constrained in every second run"),
        ("--num-free", 32, "requests beside them"),
        ("--input-len", 32, "tokens per prompt"),
        ("--num-steps", 100, "measured steps of each run"),
        ("--num-rounds", 5, "measured runs of either kind"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{text} (default: {default})")
    parser.add_argument("--output-json", metavar="FILE", help="write the results as JSON")
    add_engine_flags(parser, defaults={"max_num_seqs": 64, "max_model_len": 1024, "enable_prefix_caching": False})


def run(llm: Any, args: argparse.Namespace) -> Any:
    """Returns the report."""
    from octavo.bench.constrained import ConstrainedOptions, run_constrained

    options = ConstrainedOptions(
        num_constrained=args.num_constrained,
        num_free=args.num_free,
        input_len=args.input_len,
        num_steps=args.num_steps,
        num_rounds=args.num_rounds,
    )
    engine = llm.engine
    return run_constrained(engine.front_end, engine.inputs, options, seed=llm.config.options.model.seed)
