"""pythonic: [f(a=1, b="x"), g()], of Llama 3.2 and 4 and ToolACE; arguments become JSON.

Owns: what is accepted. The list begins at the start of a line, or behind <|python_start|>; arguments are keywords with
literal values (`python_literal`); a call is reported when it is complete, with all its arguments. A call cut off by the
end of the text is content.
Source: the models' chat templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from octavo.parsers.cursor import BLANK, EndOfTextError, MalformedError, Steps
from octavo.parsers.interface import OutputParser, ToolSpec
from octavo.parsers.json_call import JsonCallFormat
from octavo.parsers.json_text import nowhere, read_word
from octavo.parsers.line_start import LineParser
from octavo.parsers.python_literal import read_keywords
from octavo.proto.structured import StructuredOutputsParams

START: Final = "<|python_start|>"
END: Final = "<|python_end|>"
_NAME: Final = re.compile(r"[\w.\-]")
_BETWEEN: Final = re.compile(r"[^\"'()\[\]{}]+")
_IN_STRING: Final = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}


class PythonicParser(LineParser):
    """Reads lists of calls."""

    def __init__(self) -> None:
        super().__init__("[", START)

    def _read(self) -> Steps[None]:
        while opener := (yield from self._pass_to_opener()):
            has_call = yield from self._try_call(self._read_first(opener))
            while has_call and (follower := (yield from self._look_behind_call(",", "]"))):
                if follower == ",":
                    self._cursor.take(1)
                    has_call = yield from self._try_call(self._read_call())
                    continue
                self._drop("]")
                if (yield from self._look_behind_call(END)):
                    self._drop(END)
                break

    def _read_first(self, opener: str) -> Steps[None]:
        if opener == START:
            self._cursor.take(len(START))
            yield from self._cursor.skip(BLANK)
        yield from self._cursor.expect("[")
        yield from self._read_call()

    def _read_call(self) -> Steps[None]:
        cursor = self._cursor
        yield from cursor.skip(BLANK)
        name = yield from read_word(cursor, _NAME)
        yield from cursor.skip(BLANK)
        yield from cursor.expect("(")
        start = cursor.num_kept
        yield from self._read_balanced()
        try:
            arguments = read_keywords(cursor.peek_kept()[start:-1])
        except ValueError as error:
            raise MalformedError from error
        cursor.take_kept()
        self._writer.begin_call(name)
        self._writer.arguments(arguments)
        self._writer.end_call()

    def _read_balanced(self) -> Steps[None]:
        """Up to and with the closing parenthesis; brackets are counted, strings skipped."""
        cursor = self._cursor
        depth = 1
        while depth:
            yield from cursor.pass_on(_BETWEEN, nowhere)
            char = yield from cursor.peek()
            if not char:
                raise EndOfTextError
            cursor.take(1)
            if char in _IN_STRING:
                yield from self._read_string(char)
            else:
                depth += 1 if char in "([{" else -1

    def _read_string(self, quote: str) -> Steps[None]:
        cursor = self._cursor
        while True:
            yield from cursor.pass_on(_IN_STRING[quote], nowhere)
            char = yield from cursor.peek()
            if not char:
                raise EndOfTextError
            cursor.take(1)
            if char == quote:
                return
            if not (yield from cursor.peek()):
                raise EndOfTextError
            cursor.take(1)


class PythonicFormat:
    """The format of Python calls. It cannot be constrained: forced calls are json_call's."""

    name = "pythonic"
    begin_markers = (START,)
    needs_special_tokens = False
    forced_parser = "json_call"

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser:
        return PythonicParser()

    def is_used_by(self, chat_template: str) -> bool:
        return "[func_name1(" in chat_template

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        if not required:
            return None
        return JsonCallFormat().constraint(tools, required=True, parallel=parallel)
