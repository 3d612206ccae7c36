"""mistral: [TOOL_CALLS] [{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...} of newer models.

Owns: what is accepted. Behind the marker a list, one object, or a name with [CALL_ID] and [ARGS] or neither before its
arguments; the marker again before each further name.
Source: the models' chat templates and the descriptions of their tokenizers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from octavo.parsers import tags
from octavo.parsers.call_list import CallListParser
from octavo.parsers.call_object import CallShape, read_call
from octavo.parsers.cursor import BLANK, Finder, MalformedError, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.json_text import ValueEnd, read_value, read_word
from octavo.proto.structured import StructuredOutputsParams

BEGIN: Final = "[TOOL_CALLS]"
CALL_ID: Final = "[CALL_ID]"
ARGS: Final = "[ARGS]"
_FINDER: Final = Finder(BEGIN)
_SHAPE: Final = CallShape(is_marked=True)
_NAME: Final = re.compile(r"[^\s\[\]{}\"<>,:]")


class MistralParser(CallListParser):
    """Reads calls behind the marker."""

    def _read(self) -> Steps[None]:
        while (yield from self._cursor.pass_until(_FINDER, self._show)):
            self._cursor.keep()
            self._cursor.take(len(BEGIN))
            try:
                yield from self._cursor.skip(BLANK)
                char = yield from self._cursor.peek()
            except MalformedError:
                char = ""
            if char == "[" and not (yield from self._is_marker_next()):
                yield from self._read_list(_SHAPE)
            elif char == "{":
                yield from self._try_call(read_call(self._cursor, self._writer, _SHAPE))
            else:
                yield from self._try_call(self._read_named())

    def _is_marker_next(self) -> Steps[bool]:
        try:
            return bool((yield from self._cursor.looking_at(BEGIN)))
        except MalformedError:
            return False

    def _read_named(self) -> Steps[None]:
        cursor, writer = self._cursor, self._writer
        name = yield from read_word(cursor, _NAME)
        marker = yield from cursor.looking_at(CALL_ID, ARGS, "{")
        if marker == CALL_ID:
            cursor.take(len(CALL_ID))
            yield from read_word(cursor, _NAME)
            marker = yield from cursor.looking_at(ARGS)
        if marker == ARGS:
            cursor.take(len(ARGS))
            yield from cursor.skip(BLANK)
        if not (yield from cursor.looking_at("{")):
            raise MalformedError
        cursor.take_kept()
        writer.begin_call(name)
        if (yield from read_value(cursor, writer.arguments)) is not ValueEnd.CUT:
            writer.end_call()


class MistralFormat:
    """The format of the tool calls marker."""

    name = "mistral"
    begin_markers = (BEGIN,)
    needs_special_tokens = True
    forced_parser = "mistral"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return MistralParser()

    def is_used_by(self, chat_template: str) -> bool:
        return BEGIN in chat_template

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        if ARGS in chat_template:
            calls = [tags.tag(f"{BEGIN}{tool.name}{ARGS}", tags.arguments_of(tool), "") for tool in tools]
            if required:
                return tags.structural_tag(tags.calls_only(calls, separator="", parallel=parallel))
            return tags.structural_tag(tags.calls_in_text(calls, triggers=[BEGIN], parallel=parallel))
        opening = f"{BEGIN} [" if f"{BEGIN} [" in chat_template else f"{BEGIN}["
        listed = tags.calls_only(tags.json_calls(tools, "arguments"), separator=", ", parallel=parallel)
        if required:
            return tags.structural_tag(tags.sequence(tags.text(opening), listed, tags.text("]")))
        one = tags.tag(opening, listed, "]")
        return tags.structural_tag(tags.calls_in_text([one], triggers=[BEGIN], parallel=False))
