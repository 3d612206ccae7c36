"""Recorded-style outputs of models, from tests/data/tool_outputs, and ways to cut a text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo.parsers.events import Event, FoldedCall, FoldedOutput, fold
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.registry import make_parser

FOLDER = Path(__file__).parent.parent / "data" / "tool_outputs"


@dataclass(frozen=True)
class RecordedOutput:
    """One text of a model and what it must be read as."""

    name: str
    text: str
    expected: FoldedOutput
    options: dict[str, Any]

    def parser(self) -> OutputParser:
        return make_parser(**self.options)


def recorded_outputs() -> list[RecordedOutput]:
    return [_read(path.stem, entry) for path in sorted(FOLDER.glob("*.json")) for entry in _entries(path)]


def replay(parser: OutputParser, pieces: Iterable[str]) -> FoldedOutput:
    return fold(events_of(parser, pieces))


def events_of(parser: OutputParser, pieces: Iterable[str]) -> list[Event]:
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.finish()


def random_pieces(text: str, seed: int, longest: int = 12) -> Iterator[str]:
    draw = random.Random(seed)
    at = 0
    while at < len(text):
        size = draw.randint(0, longest)
        yield text[at : at + size]
        at += size


def _entries(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return entries


def _read(stem: str, entry: dict[str, Any]) -> RecordedOutput:
    expect = entry["expect"]
    return RecordedOutput(
        name=f"{stem}: {entry['name']}",
        text=entry["text"],
        expected=FoldedOutput(
            expect["content"], expect["reasoning"], tuple(FoldedCall(**call) for call in expect["calls"])
        ),
        options={
            "tool": entry["tool"],
            "reasoning": entry.get("reasoning_parser"),
            "starts_in_reasoning": entry.get("starts_in_reasoning", False),
            "tools": [ToolSpec(tool["name"], tool.get("parameters")) for tool in entry.get("tools", ())],
        },
    )
