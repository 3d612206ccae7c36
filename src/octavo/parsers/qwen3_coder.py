"""qwen3_coder: <tool_call><function=name><parameter=key>value</parameter></function></tool_call>, of Qwen3-Coder.

Owns: what is accepted, and the JSON built from it. <tool_call> and </tool_call> may be missing, and so may </parameter>
before the next parameter or the function's end in a line of its own, and </function> before </tool_call>. One line feed
behind <parameter=...> and one before </parameter> belong to the format. Values become JSON by the tool's schema
(`typed_value`): strings as they come, others when they are complete, or as strings where they are longer than may be
held. A call cut off by the end of the text leaves its object open, without the value that was not complete; a call in
which something else follows ends there, and what follows is content.
Source: the models' chat templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from octavo.parsers import tags
from octavo.parsers.cursor import BLANK, EndOfTextError, Finder, MalformedError, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.json_text import escape, nowhere, read_word
from octavo.parsers.machine import GrammarParser
from octavo.parsers.typed_value import choices_of, json_of, types_of
from octavo.proto.sampling_checks import refuse
from octavo.proto.structured import MAX_GRAMMAR_BYTES, StructuredOutputsParams

BEGIN: Final = "<tool_call>"
END: Final = "</tool_call>"
FUNCTION: Final = "<function="
FUNCTION_END: Final = "</function>"
PARAMETER: Final = "<parameter="
PARAMETER_END: Final = "</parameter>"
_FINDER: Final = Finder(BEGIN, FUNCTION)
_VALUE_END: Final = Finder(f"\n{PARAMETER_END}", PARAMETER_END, f"\n{PARAMETER}", f"\n{FUNCTION_END}")
_NAME: Final = re.compile(r"[^<>\r\n]")
_MIN_ELEMENT_BYTES: Final = 32
"""That a parameter, or one of its values, takes in a constraint."""


class QwenCoderParser(GrammarParser):
    """Reads calls written in tags."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__()
        self._schemas: dict[str, Mapping[str, Any] | None] = {tool.name: tool.parameters for tool in tools}
        self._separator = "{"

    def _read(self) -> Steps[None]:
        while opener := (yield from self._cursor.pass_until(_FINDER, self._show)):
            self._cursor.keep()
            if not (yield from self._try_call(self._read_head(opener))):
                continue
            if (yield from self._read_body()) and (yield from self._look_behind_call(END)):
                self._drop(END)

    def _read_head(self, opener: str) -> Steps[None]:
        cursor = self._cursor
        if opener == BEGIN:
            cursor.take(len(BEGIN))
            yield from cursor.skip(BLANK)
        yield from cursor.expect(FUNCTION)
        name = yield from read_word(cursor, _NAME)
        yield from cursor.expect(">")
        cursor.take_kept()
        self._schema = self._schemas.get(name)
        self._separator = "{"
        self._writer.begin_call(name)

    def _read_body(self) -> Steps[bool]:
        """Parameters and the function's end. False: </tool_call> may no longer follow."""
        cursor = self._cursor
        while True:
            cursor.keep()
            try:
                yield from cursor.skip(BLANK)
                marker = yield from cursor.looking_at(PARAMETER, FUNCTION_END, END)
                if not marker:
                    raise MalformedError
                if marker != PARAMETER:
                    break
                cursor.take(len(PARAMETER))
                key = yield from read_word(cursor, _NAME)
                yield from cursor.expect(">")
                if (yield from cursor.looking_at("\n")):
                    cursor.take(1)
            except EndOfTextError:
                cursor.drop_rest()
                cursor.take_kept()
                return False
            except MalformedError:
                self._writer.end_call()
                self._show(cursor.take_kept())
                return False
            cursor.take_kept()
            end = yield from self._read_value(key)
            if not end:
                return False
            if end.endswith(PARAMETER_END):
                cursor.take(len(end))
        if marker == FUNCTION_END:
            cursor.take(len(FUNCTION_END))
        cursor.take_kept()
        self._writer.arguments("{}" if self._separator == "{" else "}")
        self._writer.end_call()
        return True

    def _read_value(self, key: str) -> Steps[str]:
        """The marker at a value's end, unread; "" if the text ended before."""
        types = types_of(self._schema, key)
        opening = f"{self._separator}{json.dumps(key, ensure_ascii=False)}: "
        if _is_text(types):
            if "null" in types and (yield from self._is_null()):
                self._put(opening, "null")
                self._cursor.take(len("null"))
                return (yield from self._cursor.looking_at(f"\n{PARAMETER_END}", PARAMETER_END))
            return (yield from self._read_string(opening, ""))
        self._cursor.keep()
        try:
            end = yield from self._cursor.pass_until(_VALUE_END, nowhere)
        except MalformedError:
            return (yield from self._read_string(opening, self._cursor.take_kept()))
        value = self._cursor.take_kept()
        if end:
            self._put(opening, json_of(value))
        return end

    def _is_null(self) -> Steps[bool]:
        try:
            return bool((yield from self._cursor.looking_at(f"null\n{PARAMETER_END}", f"null{PARAMETER_END}")))
        except EndOfTextError:
            return False

    def _read_string(self, opening: str, head: str) -> Steps[str]:
        self._put(opening, f'"{escape(head)}')
        end = yield from self._cursor.pass_until(_VALUE_END, self._write_escaped)
        if end:
            self._writer.arguments('"')
        return end

    def _write_escaped(self, text: str) -> None:
        self._writer.arguments(escape(text))

    def _put(self, opening: str, value: str) -> None:
        self._writer.arguments(opening + value)
        self._separator = ", "


class QwenCoderFormat:
    """The format of tags for functions and parameters."""

    name = "qwen3_coder"
    begin_markers = (BEGIN, FUNCTION)
    needs_special_tokens = True
    forced_parser = "qwen3_coder"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return QwenCoderParser(tools)

    def is_used_by(self, chat_template: str) -> bool:
        return FUNCTION in chat_template and PARAMETER in chat_template

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        _check_size(tools)
        calls = [tags.tag(f"{BEGIN}\n{FUNCTION}{tool.name}>\n", _parameters(tool), END) for tool in tools]
        if required:
            return tags.structural_tag(tags.calls_only(calls, separator="\n", parallel=parallel))
        return tags.structural_tag(tags.calls_in_text(calls, triggers=[BEGIN], parallel=parallel))


def _check_size(tools: Sequence[ToolSpec]) -> None:
    """Raises ValidationError for tools whose constraint is larger than a grammar may be, before it is made."""
    num_bytes = 0
    for tool in tools:
        schema = tags.schema_of(tool)
        properties = schema.get("properties")
        names = list(properties) if isinstance(properties, Mapping) else []
        num_definition_bytes = len(json.dumps(_with_definitions({}, schema)))
        num_bytes += _MIN_ELEMENT_BYTES * len(names)
        for name in names:
            if num_bytes > MAX_GRAMMAR_BYTES:
                break
            is_text = _is_text(types_of(schema, name))
            num_bytes += _MIN_ELEMENT_BYTES * len(choices_of(schema, name)) if is_text else num_definition_bytes
        if num_bytes > MAX_GRAMMAR_BYTES:
            remedy = (
                f"bytes of constraint at least; at most {MAX_GRAMMAR_BYTES} are taken: fewer parameters or definitions"
            )
            refuse("tools", num_bytes, remedy)


def _is_text(types: Collection[str]) -> bool:
    """A parameter of these types, or of unknown ones, is written as it is."""
    return not types or "string" in types


def _parameters(tool: ToolSpec) -> tags.Format:
    """Each parameter in the schema's order, those that are not required or none, and the function's end.

    Text parameters are free, but for those with an enum: pattern and lengths are not enforced.
    """
    schema = tags.schema_of(tool)
    properties = schema.get("properties")
    required = schema.get("required")
    elements = []
    for key, value in (properties if isinstance(properties, Mapping) else {}).items():
        element = tags.tag(f"{PARAMETER}{key}>\n", _value(schema, key, value), f"\n{PARAMETER_END}\n")
        elements.append(
            element if isinstance(required, list) and key in required else {"type": "optional", "content": element}
        )
    return tags.sequence(*elements, tags.text(f"{FUNCTION_END}\n"))


def _value(schema: Mapping[str, Any], key: str, value: Any) -> tags.Format:
    if not _is_text(types_of(schema, key)):
        return {"type": "json_schema", "json_schema": _with_definitions(value, schema)}
    choices = [choice for choice in choices_of(schema, key) if choice]
    return tags.either(*map(tags.text, choices)) if choices else {"type": "any_text"}


def _with_definitions(value: Any, root: Mapping[str, Any]) -> Any:
    """A parameter's own schema, with what its references point to."""
    if not isinstance(value, Mapping):
        return value
    return {**value, **{word: root[word] for word in ("$defs", "definitions") if word in root}}
