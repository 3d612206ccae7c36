"""hermes: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, of Hermes 2 and 3, Qwen2.5, Qwen3, QwQ.

Owns: what is accepted. Blanks around the object; several objects in one pair of tags; a missing closing tag; arguments
under either key (`call_object`).
Source: the models' chat templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octavo.parsers import tags
from octavo.parsers.call_object import CallShape, read_call
from octavo.parsers.cursor import BLANK, Finder, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.machine import GrammarParser
from octavo.proto.structured import StructuredOutputsParams

BEGIN: Final = "<tool_call>"
END: Final = "</tool_call>"
_FINDER: Final = Finder(BEGIN)
_SHAPE: Final = CallShape(is_marked=True, stop=END)


class HermesParser(GrammarParser):
    """Reads calls between tags."""

    def _read(self) -> Steps[None]:
        while (yield from self._cursor.pass_until(_FINDER, self._show)):
            self._cursor.keep()
            self._cursor.take(len(BEGIN))
            has_call = yield from self._try_call(self._read_object())
            while has_call:
                closer = yield from self._look_behind_call(END, "{")
                if closer != "{":
                    break
                has_call = yield from self._try_call(self._read_object())
            if has_call and closer:
                self._drop(END)

    def _read_object(self) -> Steps[None]:
        yield from self._cursor.skip(BLANK)
        yield from read_call(self._cursor, self._writer, _SHAPE)


class HermesFormat:
    """The format of tags around JSON objects."""

    name = "hermes"
    begin_markers = (BEGIN,)
    needs_special_tokens = True
    forced_parser = "hermes"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return HermesParser()

    def is_used_by(self, chat_template: str) -> bool:
        return BEGIN in chat_template and '"arguments"' in chat_template.replace("\\", "")

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        calls = tags.json_calls(tools, "arguments", before=f"{BEGIN}\n", after=f"\n{END}")
        if required:
            return tags.structural_tag(tags.calls_only(calls, separator="\n", parallel=parallel))
        return tags.structural_tag(tags.calls_in_text(calls, triggers=[BEGIN], parallel=parallel))
