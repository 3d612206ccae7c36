"""`octavo pull`: download a model by its alias into the cache, with a progress bar."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="aliases (see `octavo models`; default: the default model)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Print the path of each model on stdout."""
    from octavo.config.model_options import DEFAULT_MODEL

    for name in args.models or [DEFAULT_MODEL]:
        print(pull_one(name, quiet=args.quiet or not sys.stderr.isatty()))
    return 0


def pull_one(name: str, *, quiet: bool) -> str:
    """Fetch one model; its path. Raises LoadError."""
    from octavo.loading import pull

    if quiet:
        return str(pull(name))
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        return str(pull(name, lambda done, total: bar.update(task, completed=done, total=total)))


def pull_if_alias(model: str) -> None:
    """Fetch a model that is named by its alias; a path or a hub id is left to the engine."""
    from octavo.loading import ALIASES

    if model in ALIASES:
        pull_one(model, quiet=not sys.stderr.isatty())
