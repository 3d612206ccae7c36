"""Readers of JSON that is still being written: strings, values, passed on character for character.

Owns: where a string or a value ends, with quotes and brackets inside strings.
Does not own: whether the JSON is valid: what a model wrote passes as it is.
Invariants: constant memory whatever the depth (brackets are counted, not matched).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum

from octavo.parsers.cursor import Cursor, EndOfTextError, MalformedError, Steps

MAX_NAME_CHARS = 512
"""Of a tool's or a parameter's name, as it is written."""

_IN_STRING = re.compile(r'[^"\\]+')
_BETWEEN = re.compile(r'[^"{}\[\]]+')
_BETWEEN_OR_TAG = re.compile(r'[^"{}\[\]<]+')
_LITERAL = re.compile(r"[A-Za-z0-9_+.\-]+")
_VALUE_STARTS = frozenset('{["-0123456789tfnTFN')

Sink = Callable[[str], None]


class ValueEnd(Enum):
    """How a value ended."""

    CLOSED = "its last character has come"
    STOPPED = "a marker stands within it, outside strings"
    CUT = "the text ended"


def nowhere(text: str) -> None:
    """A sink for what is only skipped."""


def check_value_start(char: str) -> None:
    """Raises MalformedError unless a JSON value can begin so."""
    if char not in _VALUE_STARTS or not char:
        raise MalformedError


def read_name(cursor: Cursor) -> Steps[str]:
    """A short JSON string: its value, not empty. Raises MalformedError."""
    parts: list[str] = []
    num_chars = 0
    yield from cursor.expect('"')
    while True:
        char = yield from cursor.peek()
        if not char or num_chars > MAX_NAME_CHARS:
            raise MalformedError
        cursor.take(1)
        if char == '"':
            break
        parts.append(char)
        num_chars += 1
        if char == "\\":
            if not (yield from cursor.peek()):
                raise MalformedError
            parts.append(cursor.take(1))
            num_chars += 1
    try:
        name = json.loads(f'"{"".join(parts)}"', strict=False)
    except ValueError as error:
        raise MalformedError from error
    if not name:
        raise MalformedError
    return join_surrogates(str(name))


def read_word(cursor: Cursor, char_class: re.Pattern[str]) -> Steps[str]:
    """Characters of a class, at least one. Raises MalformedError, also where there are more than MAX_NAME_CHARS."""
    word = ""
    while (char := (yield from cursor.peek())) and char_class.match(char):
        if len(word) == MAX_NAME_CHARS:
            raise MalformedError
        word += cursor.take(1)
    if not word:
        raise MalformedError
    return word


def join_surrogates(text: str) -> str:
    """Escapes may give halves of a pair: pairs become their character, a half alone U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escape(text: str) -> str:
    """What stands for this text in a JSON string. Escapes of pieces joined are the escape of the whole."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_value(cursor: Cursor, sink: Sink, stop: str = "") -> Steps[ValueEnd]:
    """Pass one JSON value on to the sink as it comes. It begins here; `check_value_start` has been asked.

    stop: a marker beginning with "<" that ends a broken value where it stands outside strings; it is left unread.
    """
    first = yield from cursor.peek()
    if first == '"':
        return (yield from _read_string(cursor, sink))
    if first not in ("{", "["):
        yield from cursor.pass_on(_LITERAL, sink)
        return ValueEnd.CLOSED if (yield from cursor.peek()) else ValueEnd.CUT
    depth = 0
    between = _BETWEEN_OR_TAG if stop else _BETWEEN
    while True:
        yield from cursor.pass_on(between, sink)
        char = yield from cursor.peek()
        if not char:
            return ValueEnd.CUT
        if char == '"':
            if (yield from _read_string(cursor, sink)) is ValueEnd.CUT:
                return ValueEnd.CUT
            continue
        if char == "<" and (yield from _stops_at(cursor, stop)):
            return ValueEnd.STOPPED
        sink(cursor.take(1))
        depth += 1 if char in "{[" else -1 if char in "}]" else 0
        if depth == 0:
            return ValueEnd.CLOSED


def _stops_at(cursor: Cursor, marker: str) -> Steps[bool]:
    try:
        return bool((yield from cursor.looking_at(marker)))
    except EndOfTextError:
        return False


def _read_string(cursor: Cursor, sink: Sink) -> Steps[ValueEnd]:
    sink(cursor.take(1))
    while True:
        yield from cursor.pass_on(_IN_STRING, sink)
        char = yield from cursor.peek()
        if not char:
            return ValueEnd.CUT
        sink(cursor.take(1))
        if char == '"':
            return ValueEnd.CLOSED
        if not (yield from cursor.peek()):
            return ValueEnd.CUT
        sink(cursor.take(1))
