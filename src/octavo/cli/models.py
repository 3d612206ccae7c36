"""`octavo models`: the aliases that can be pulled, and what is in the cache."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Two lines a model: name, size, where it is or how to get it; what it is, and its licence."""
    from octavo.loading import ALIASES, list_cached

    cached = {model.name: model for model in list_cached()}
    rows = []
    for name in [*ALIASES, *(name for name in cached if name not in ALIASES)]:
        alias, model = ALIASES.get(name), cached.get(name)
        row: dict[str, str | int | None] = {"name": name, "path": str(model.path) if model else None}
        row["num_bytes"] = model.num_bytes if model else ALIASES[name].num_bytes
        row |= {"about": alias.about, "license": alias.license} if alias else {}
        rows.append(row)
    print(json.dumps(rows, indent=2) if args.json else "\n".join(_describe(row) for row in rows))
    return 0


def _describe(row: dict[str, str | int | None]) -> str:
    from octavo.base.units import format_bytes

    place = row["path"] or f"not in the cache: octavo pull {row['name']}"
    lines = [f"{row['name']}  {format_bytes(int(row['num_bytes'] or 0))}"]
    if "about" in row:
        lines.append(f"    {row['about']} ({row['license']})")
    return "\n".join([*lines, f"    {place}"])
