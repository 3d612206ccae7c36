"""The input of a call while it is being written: how much of a text is the beginning of a JSON object.

Owns: which characters are passed on, and the object that a text stands for when it breaks off.
Does not own: schemas.   Source of the grammar: RFC 8259.
The rule is one for a text that was cut and for one with a fault in it: what comes up to there counts, but for the
string, number or word that is not whole; lists and objects keep what is whole. A text that is no object gives {}.
Invariants: linear time; what is passed on does not depend on how the text was cut into pieces; `whole_input` of it is
the object that the official clients' readers of incomplete JSON make of it.
"""

from __future__ import annotations

import re

import msgspec

MAX_DEPTH = 128
MAX_NUMBER_CHARS = 256

_BLANKS = re.compile(r"[ \t\n\r]*+")
_IN_STRING = re.compile(
    r'(?:[^"\\\x00-\x1f\ud800-\udfff]++'
    r'|\\["\\/bfnrt]'
    r"|\\u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
"""As far as a string is whole characters. Half of a surrogate pair alone is none."""
_PART_OF_ESCAPE = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?))?"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[ \t\n\r,\]}])")
_NUMBER_CHARS = re.compile(rf"[-+0-9.eE]{{1,{MAX_NUMBER_CHARS}}}")
_WORDS = {"t": "true", "f": "false", "n": "null"}
_CLOSERS = {"{": "}", "[": "]"}


class InputReader:
    """Reads one text, piece by piece."""

    def __init__(self) -> None:
        self.is_over = False
        """The object has ended, or something has come that cannot be part of one: nothing more is passed on."""
        self.num_whole = 0
        """How many of the characters passed on are kept where the text breaks off; `closing` makes them an object."""
        self._open: list[str] = []
        self._wants = "object"
        """object, value, item (or the list's end), name, first name (or end), colon, comma (or end)"""
        self._string = ""
        """Inside a string: whether it is a name or a value."""
        self._held = ""
        self._num_passed = 0

    def feed(self, text: str) -> str:
        """As much of what has come as is known to belong to the object."""
        if self.is_over:
            return ""
        text = self._held + text
        if not self._num_passed:
            text = text[_BLANKS.match(text).end() :]  # type: ignore[union-attr]
        end = 0
        while end < len(text) and not self.is_over:
            step = self._in_string(text, end) if self._string else self._between(text, end)
            if step == end:
                break
            end = step
        self._held = text[end:]
        self._num_passed += end
        return text[:end]

    @property
    def closing(self) -> str:
        """Ends of what is open."""
        return "".join(_CLOSERS[opening] for opening in reversed(self._open))

    # Each step returns the end of what it has read; where it began, if it must wait or nothing can follow.

    def _in_string(self, text: str, start: int) -> int:
        match = _IN_STRING.match(text, start)
        assert match is not None
        end = match.end()
        if end == len(text) or _PART_OF_ESCAPE.fullmatch(text, end):
            return end
        if text[end] != '"':
            self.is_over = True
            return end
        kind, self._string = self._string, ""
        if kind == "name":
            self._wants = "colon"
            return end + 1
        return self._whole(end + 1)

    def _between(self, text: str, start: int) -> int:
        char, wants = text[start], self._wants
        if char in " \t\n\r":
            match = _BLANKS.match(text, start)
            assert match is not None
            return match.end()
        if char in ":,}]":
            return self._sign(char, start)
        if char in "{[":
            return self._enter(char, start)
        if char == '"' and wants in ("name", "first name", "value", "item"):
            self._string = "value" if wants in ("value", "item") else "name"
            return start + 1
        if wants in ("value", "item"):
            return self._scalar(text, start)
        self.is_over = True
        return start

    def _sign(self, char: str, start: int) -> int:
        if (char, self._wants) == (":", "colon"):
            self._wants = "value"
        elif (char, self._wants) == (",", "comma"):
            self._wants = "name" if self._open[-1] == "{" else "value"
        elif char in "}]" and self._may_close(char):
            self._open.pop()
            self._whole(start + 1)
            self.is_over = not self._open
        else:
            self.is_over = True
            return start
        return start + 1

    def _may_close(self, char: str) -> bool:
        is_end = self._wants in ("comma", "first name" if char == "}" else "item")
        return is_end and _CLOSERS[self._open[-1]] == char

    def _scalar(self, text: str, start: int) -> int:
        word = _WORDS.get(text[start])
        if word is not None:
            if text.startswith(word, start):
                return self._whole(start + len(word))
            self.is_over = not word.startswith(text[start:])
            return start
        number = _NUMBER.match(text, start, start + MAX_NUMBER_CHARS)
        if number is not None:
            return self._whole(number.end())
        self.is_over = _NUMBER_CHARS.fullmatch(text, start) is None
        return start

    def _enter(self, char: str, start: int) -> int:
        takes = ("object", "value", "item") if char == "{" else ("value", "item")
        if self._wants not in takes or len(self._open) == MAX_DEPTH:
            self.is_over = True
            return start
        self._open.append(char)
        self._whole(start + 1)
        self._wants = "first name" if char == "{" else "item"
        return start + 1

    def _whole(self, end: int) -> int:
        self._wants = "comma"
        self.num_whole = self._num_passed + end
        return end


def whole_input(text: str) -> msgspec.Raw:
    """The object that what was passed on stands for, as JSON."""
    reader = InputReader()
    passed = reader.feed(text)
    return msgspec.Raw((passed[: reader.num_whole] + reader.closing or "{}").encode())
