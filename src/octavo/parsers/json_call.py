"""json_call: the whole text is [{"name": ..., "parameters": {...}}, ...]: forced calls of models without a format.

Owns: what is accepted. The list is the first thing in the text; text behind it is content.
Source: what vLLM lets models write where calls are required.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from octavo.parsers import tags
from octavo.parsers.call_list import CallListParser
from octavo.parsers.call_object import CallShape
from octavo.parsers.cursor import BLANK, MalformedError, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.proto.structured import StructuredOutputsParams

_SHAPE: Final = CallShape(is_marked=False)
_ANY: Final = re.compile(r"(?s:.)+")


class JsonCallParser(CallListParser):
    """Reads one list."""

    def _read(self) -> Steps[None]:
        self._cursor.keep()
        if (yield from self._is_at_list()):
            yield from self._read_list(_SHAPE)
        else:
            self._show(self._cursor.take_kept())
        yield from self._cursor.pass_on(_ANY, self._show)

    def _is_at_list(self) -> Steps[bool]:
        try:
            yield from self._cursor.skip(BLANK)
            return bool((yield from self._cursor.looking_at("[")))
        except MalformedError:
            return False


class JsonCallFormat:
    """The format of models that have none."""

    name = "json_call"
    begin_markers = ()
    needs_special_tokens = False
    forced_parser = "json_call"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return JsonCallParser()

    def is_used_by(self, chat_template: str) -> bool:
        return False

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        if not required:
            return None
        calls = tags.calls_only(tags.json_calls(tools, "parameters"), separator=", ", parallel=parallel)
        return tags.structural_tag(tags.sequence(tags.text("["), calls, tags.text("]")))
