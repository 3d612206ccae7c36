"""Python literals as JSON: the arguments of f(a=1, b='x') and the values models write for them.

Owns: strings with their escapes, numbers, True/False/None (and true/false/null), lists, tuples, dicts.
Does not own: anything that would have to be evaluated: names, calls, operators are errors.
Invariants: linear; no warning and no interpreter state; nesting is limited to MAX_DEPTH.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

from octavo.parsers.json_text import join_surrogates

MAX_DEPTH: Final = 64

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_KEY: Final = re.compile(r"[^\W\d][\w\-]*+")
_WORD: Final = re.compile(r"[A-Za-z]+")
_STRING: Final = re.compile(
    r"""'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)\"""",
    re.DOTALL,
)
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xXoObB][0-9a-fA-F_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?![\w.])"
)
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r\n|.))", re.DOTALL
)
_ESCAPED: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "\n": "", "\r\n": "",
}  # fmt: skip
_WORDS: Final = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}


def read_keywords(text: str) -> str:
    """The JSON object that keyword arguments (what stands between the parentheses) make. Raises ValueError."""
    reader = _Reader(text)
    members: list[str] = []
    while not reader.is_at_end():
        key = reader.read(_KEY)
        reader.expect("=")
        members.append(f"{json.dumps(key, ensure_ascii=False)}: {reader.read_value(0)}")
        if not reader.take(","):
            break
    reader.check_end()
    return "{" + ", ".join(members) + "}"


def read_literal(text: str) -> str:
    """The JSON of one literal. Raises ValueError."""
    reader = _Reader(text)
    value = reader.read_value(0)
    reader.check_end()
    return value


class _Reader:
    """A place in a text, blanks skipped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._skip()

    def is_at_end(self) -> bool:
        return self._at == len(self._text)

    def check_end(self) -> None:
        if not self.is_at_end():
            raise ValueError("text behind the literal")

    def take(self, char: str) -> bool:
        if not self._text.startswith(char, self._at):
            return False
        self._at += len(char)
        self._skip()
        return True

    def expect(self, char: str) -> None:
        if not self.take(char):
            raise ValueError(f"{char} is missing")

    def read(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if not found:
            raise ValueError("something else is expected here")
        self._at = found.end()
        self._skip()
        return found[0]

    def read_value(self, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        match self._text[self._at : self._at + 1]:
            case "'" | '"':
                return json.dumps(self._read_string(), ensure_ascii=False)
            case "[":
                return self._read_items("[", "]", depth)
            case "(":
                return self._read_items("(", ")", depth)
            case "{":
                return self._read_dict(depth)
            case char if char.isalpha():
                word = _WORDS.get(self.read(_WORD))
                if word is None:
                    raise ValueError("a name is no literal")
                return word
            case _:
                return _as_json_number(self.read(_NUMBER))

    def _read_string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if not found:
            raise ValueError("a string does not end")
        self._at = found.end()
        self._skip()
        body = found[1] if found[1] is not None else found[2]
        return join_surrogates(_ESCAPE.sub(_unescape, body)) if "\\" in body else body

    def _read_items(self, opener: str, closer: str, depth: int) -> str:
        """A list or a tuple; parentheses around one value without a comma are only that value."""
        self.expect(opener)
        items: list[str] = []
        has_comma = False
        while not self.take(closer):
            items.append(self.read_value(depth + 1))
            if not self.take(","):
                self.expect(closer)
                break
            has_comma = True
        if opener == "(" and len(items) == 1 and not has_comma:
            return items[0]
        return "[" + ", ".join(items) + "]"

    def _read_dict(self, depth: int) -> str:
        self.expect("{")
        members: list[str] = []
        while not self.take("}"):
            key = self.read_value(MAX_DEPTH)
            self.expect(":")
            key = key if key.startswith('"') else json.dumps(key)
            members.append(f"{key}: {self.read_value(depth + 1)}")
            if not self.take(","):
                self.expect("}")
                break
        return "{" + ", ".join(members) + "}"

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at


def _as_json_number(text: str) -> str:
    if _JSON_NUMBER.fullmatch(text):
        return text
    try:
        return str(int(text, 0))
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return repr(number)


def _unescape(found: re.Match[str]) -> str:
    octal, *codes, char = found.groups()
    if octal:
        return chr(int(octal, 8))
    for code in codes:
        if code:
            return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ufffd"
    return _ESCAPED.get(char, "\\" + char)
