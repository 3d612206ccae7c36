"""llama3_json: {"name": ..., "parameters": {...}}, of Llama 3.1, 3.2 and 3.3.

Owns: what is accepted. A call without a marker begins at the start of a line and has no members but name, type, id and
its arguments (under either key), so that JSON in an answer stays content; <|python_tag|> may stand before a call
anywhere. Further calls follow directly or behind ";". What follows <|python_tag|> and is no JSON call (code, built-in
tools) is content, with the tag.
The constraint for auto covers calls that begin the text: behind other text no marker says that a call begins.
Source: the models' chat templates and Meta's description of the prompt format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octavo.parsers import tags
from octavo.parsers.call_object import CallShape, read_call
from octavo.parsers.cursor import BLANK, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.line_start import LineParser
from octavo.proto.structured import StructuredOutputsParams

PYTHON_TAG: Final = "<|python_tag|>"
_CALL_START: Final = '{"name": '
_BARE: Final = CallShape(is_marked=False)
_TAGGED: Final = CallShape(is_marked=True)


class LlamaJsonParser(LineParser):
    """Reads objects that are calls."""

    def __init__(self) -> None:
        super().__init__("{", PYTHON_TAG)

    def _read(self) -> Steps[None]:
        while opener := (yield from self._pass_to_opener()):
            shape = _BARE
            if opener == PYTHON_TAG:
                self._cursor.take(len(PYTHON_TAG))
                shape = _TAGGED
            has_call = yield from self._try_call(self._read_object(shape))
            while has_call and (follower := (yield from self._look_behind_call(";", "{", PYTHON_TAG))):
                if follower != "{":
                    self._cursor.take(len(follower))
                has_call = yield from self._try_call(self._read_object(_BARE))

    def _read_object(self, shape: CallShape) -> Steps[None]:
        yield from self._cursor.skip(BLANK)
        yield from read_call(self._cursor, self._writer, shape)


class LlamaJsonFormat:
    """The format of bare JSON objects."""

    name = "llama3_json"
    begin_markers = (PYTHON_TAG,)
    needs_special_tokens = True
    forced_parser = "llama3_json"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return LlamaJsonParser()

    def is_used_by(self, chat_template: str) -> bool:
        template = chat_template.replace("\\", "")
        return '{"name": function name, "parameters"' in template or (
            PYTHON_TAG in template and '"parameters": ' in template
        )

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        calls = tags.json_calls(tools, "parameters")
        if required:
            return tags.structural_tag(tags.calls_only(calls, separator="; ", parallel=parallel))
        calls += tags.json_calls(tools, "parameters", before=PYTHON_TAG)
        begun = tags.calls_only(calls, separator="; ", parallel=parallel)
        return tags.structural_tag(tags.either(begun, tags.text_unlike(_CALL_START)))
