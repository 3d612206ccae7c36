"""What the model says, as blocks: the events of a stream, and the fold that makes the whole answer of the same events.

Owns: where blocks begin and end, ids of calls, signatures.   Does not own: reading the model's text (parsers).
Invariants: one block is open at a time; indices count from 0; no delta is empty; folding is all that an answer which is
not streamed adds.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Event, Reasoning
from octavo.server.anthropic.events import (
    BlockDelta,
    BlockEvent,
    BlockStart,
    BlockStop,
    Delta,
    InputJsonDelta,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
)
from octavo.server.anthropic.input_json import InputReader, whole_input
from octavo.server.anthropic.message_types import Block, TextBlock, ThinkingBlock, ToolUseBlock


def new_call_id() -> str:
    """As Anthropic names calls."""
    return f"toolu_{secrets.token_hex(12)}"


class BlockWriter:
    """Makes blocks of the events of one answer."""

    def __init__(self) -> None:
        self.has_calls = False
        self._num_begun = 0
        self._block: Block | None = None
        self._input = InputReader()
        self._digest = hashlib.sha256()

    def write(self, events: Iterable[Event]) -> list[BlockEvent]:
        """What these add; adjacent pieces are joined."""
        out: list[BlockEvent] = []
        for event in events:
            match event:
                case Content(text):
                    self._add_text(text, out)
                case Reasoning(text):
                    self._add_thought(text, out)
                case CallBegun(_, name):
                    self._end(out)
                    self._begin(ToolUseBlock(id=new_call_id(), name=name), out)
                    self._input = InputReader()
                    self.has_calls = True
                case CallArguments(_, text):
                    passed = self._input.feed(text)
                    if passed:
                        self._delta(InputJsonDelta(passed), out)
                case CallEnded():
                    self._end(out)
        return _join(out)

    def finish(self) -> list[BlockEvent]:
        """The answer has ended."""
        out: list[BlockEvent] = []
        self._end(out)
        return out

    def _add_text(self, text: str, out: list[BlockEvent]) -> None:
        if not isinstance(self._block, TextBlock):
            self._end(out)
            self._begin(TextBlock(), out)
        self._delta(TextDelta(text), out)

    def _add_thought(self, text: str, out: list[BlockEvent]) -> None:
        if not isinstance(self._block, ThinkingBlock):
            self._end(out)
            self._begin(ThinkingBlock(), out)
            self._digest = hashlib.sha256()
        self._digest.update(text.encode("utf-8", "replace"))
        self._delta(ThinkingDelta(text), out)

    def _begin(self, block: Block, out: list[BlockEvent]) -> None:
        self._block = block
        out.append(BlockStart(self._num_begun, block))
        self._num_begun += 1

    def _delta(self, delta: Delta, out: list[BlockEvent]) -> None:
        out.append(BlockDelta(self._num_begun - 1, delta))

    def _end(self, out: list[BlockEvent]) -> None:
        if self._block is None:
            return
        if isinstance(self._block, ThinkingBlock):
            self._delta(SignatureDelta(base64.b64encode(self._digest.digest()).decode()), out)
        out.append(BlockStop(self._num_begun - 1))
        self._block = None


def _join(events: list[BlockEvent]) -> list[BlockEvent]:
    """One delta in place of several of a kind in a row."""
    joined: list[BlockEvent] = []
    run: list[str] = []
    for position, event in enumerate(events):
        delta = event.delta if isinstance(event, BlockDelta) else None
        if delta is None or isinstance(delta, SignatureDelta):
            joined.append(event)
            continue
        run.append(_text_of(delta))
        following = events[position + 1] if position + 1 < len(events) else None
        if isinstance(following, BlockDelta) and type(following.delta) is type(delta):
            continue
        joined.append(BlockDelta(event.index, type(delta)("".join(run))))
        run.clear()
    return joined


def _text_of(delta: Delta) -> str:
    match delta:
        case TextDelta(text=text) | ThinkingDelta(thinking=text):
            return text
        case InputJsonDelta(partial_json=text) | SignatureDelta(signature=text):
            return text


def fold_blocks(events: Iterable[BlockEvent]) -> list[Block]:
    """The content that these events, all of one answer, make."""
    blocks: list[Block] = []
    texts: list[list[str]] = []
    signatures: dict[int, str] = {}
    for event in events:
        if isinstance(event, BlockStart):
            blocks.append(event.content_block)
            texts.append([])
        elif isinstance(event, BlockDelta) and isinstance(event.delta, SignatureDelta):
            signatures[event.index] = event.delta.signature
        elif isinstance(event, BlockDelta):
            texts[event.index].append(_text_of(event.delta))
    return [_whole(block, "".join(texts[index]), signatures.get(index, "")) for index, block in enumerate(blocks)]


def _whole(begun: Block, text: str, signature: str) -> Block:
    match begun:
        case TextBlock():
            return TextBlock(text=text)
        case ThinkingBlock():
            return ThinkingBlock(thinking=text, signature=signature)
        case ToolUseBlock(id=call_id, name=name):
            return ToolUseBlock(id=call_id, name=name, input=whole_input(text))
