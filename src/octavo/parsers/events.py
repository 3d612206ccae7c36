"""What a parser reports, and the fold that makes one message of it.

Owns: the five events; `fold`, by which an answer that is not streamed is made from the same events.
Does not own: ids of calls, wire formats.
Invariants: of call i, CallBegun comes before its CallArguments and these before its CallEnded; calls are numbered from
0 in the order in which they begin, one after the other. A call without CallEnded was cut off by the end of the text:
its arguments are the part that had come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    """Text for the reader. Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text that the model thought. Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegun:
    """Call `index` of the tool `name` begins."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next piece of the arguments of call `index`, as the model wrote it. Never empty."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The model closed call `index`."""

    index: int


Event = Content | Reasoning | CallBegun | CallArguments | CallEnded


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """One call. `is_complete`: the model closed it; otherwise `arguments` is the part that had come."""

    name: str
    arguments: str
    is_complete: bool


@dataclass(frozen=True, slots=True)
class FoldedOutput:
    """All of a text: what its events amount to."""

    content: str
    reasoning: str
    calls: tuple[FoldedCall, ...]


def fold(events: Iterable[Event]) -> FoldedOutput:
    """The message that these events, all of one text, make."""
    content: list[str] = []
    reasoning: list[str] = []
    names: list[str] = []
    arguments: list[list[str]] = []
    ended: set[int] = set()
    for event in events:
        match event:
            case Content(text):
                content.append(text)
            case Reasoning(text):
                reasoning.append(text)
            case CallBegun(_, name):
                names.append(name)
                arguments.append([])
            case CallArguments(index, text):
                arguments[index].append(text)
            case CallEnded(index):
                ended.add(index)
    calls = tuple(FoldedCall(name, "".join(arguments[i]), i in ended) for i, name in enumerate(names))
    return FoldedOutput("".join(content), "".join(reasoning), calls)
