"""`octavo bench compare A.json B.json`: two results of `octavo bench workloads`, as a table and as a bar chart.

Owns: flags, what is printed.   Does not own: ratios and picture (octavo/bench/compare*.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from octavo.cli.parser import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs=2, metavar="FILE", help="results; ratios are those of the second to the first")
    parser.add_argument("--labels", nargs=2, metavar="NAME", help="of the engines (default: what the files say)")
    parser.add_argument("--png", metavar="FILE", help="draw the bars; needs the extra `bench`")
    parser.add_argument("--title", default="Tokens per second", help="of the picture")


def run(args: argparse.Namespace) -> int:
    from octavo.bench.compare import compare, parse_labels, read_rates
    from octavo.bench.compare_png import write_comparison_png
    from octavo.bench.serve.timeline_png import has_matplotlib

    if args.png and not has_matplotlib():
        raise UsageError("--png needs matplotlib: pip install 'octavo[bench]'")
    labels = parse_labels(args.labels)
    base, other = (read_rates(Path(file), label) for file, label in zip(args.files, labels, strict=True))
    comparison = compare(base, other)
    print(comparison)
    if args.png:
        write_comparison_png(comparison, Path(args.png), title=args.title)
    return 0
