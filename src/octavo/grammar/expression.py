"""Regular expressions: what is refused before the library sees them.

Owns: nesting, written-out size, constructs that a finite automaton does not have.
Does not own: the syntax itself (the library's, that of Rust's regex crate).
"""

from __future__ import annotations

import re

from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError

_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_COUNT = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_TOKEN = re.compile(
    r"""\\(?:[pPxuU]\{[^}]{0,64}\}|.)       # an escape; no name in one is longer
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*+\]   # a class
      | \(\?(?:P?<[A-Za-z_]\w*>|[a-zA-Z-]*:)|\(\?[a-zA-Z-]+\)|\(   # a group's head, or flags
      | [)|*+?]
      | \{\d{1,9}(?:,\d{0,9})?\}
      | .
    """,
    re.VERBOSE | re.DOTALL,
)


def check_expression(text: str, limits: GrammarLimits, pointer: str | None = None) -> int:
    """The length of the longest way through, with counted repetitions written out. Raises SpecError. Cost: one pass."""
    if not text:
        raise SpecError("the expression is empty", pointer)
    _refuse_constructs(text, pointer)
    ways = LongestWay()
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == ")":
            if ways.depth == 0:
                raise SpecError("invalid regex: a group is closed that was not opened", pointer)
            ways.close()
        elif token[0] == "(" and not token.endswith(")"):
            ways.open()
            if ways.depth > limits.max_depth:
                raise SpecError(f"invalid regex: groups nest deeper than {limits.max_depth}", pointer)
        elif (count := _COUNT.fullmatch(token)) is not None:
            ways.repeat(max(int(count[1]), int(count[2] or 0)))
        elif token == "|":
            ways.branch()
        elif token not in ("*", "+", "?") and token[0] != "(":
            ways.add(1)
        if ways.length > limits.max_expression_size:
            raise SpecError(
                f"the expression has more than {limits.max_expression_size} characters with its repetitions written "
                "out; use smaller counts, or * and +",
                pointer,
            )
    if ways.depth:
        raise SpecError("invalid regex: a group is not closed", pointer)
    return ways.length


class LongestWay:
    """Length of the longest text an expression stands for, where what may repeat without end counts once."""

    def __init__(self) -> None:
        self._outer: list[tuple[int, int]] = []
        """(length of the branch, of the longest branch before it) of each group that is open."""
        self._branch, self._longest, self._last = 0, 0, 0

    @property
    def depth(self) -> int:
        """Groups that are open."""
        return len(self._outer)

    @property
    def length(self) -> int:
        """Of the innermost group that is open."""
        return max(self._branch, self._longest)

    def add(self, length: int) -> None:
        self._branch += length
        self._last = length

    def repeat(self, times: int) -> None:
        """What came last, so many times."""
        self._branch += self._last * (max(times, 1) - 1)
        self._last *= max(times, 1)

    def branch(self) -> None:
        self._longest, self._branch, self._last = self.length, 0, 0

    def open(self) -> None:
        self._outer.append((self._branch, self._longest))
        self._branch, self._longest, self._last = 0, 0, 0

    def close(self) -> None:
        length = self.length
        self._branch, self._longest = self._outer.pop() if self._outer else (0, 0)
        self.add(length)


def _refuse_constructs(text: str, pointer: str | None) -> None:
    """Look-around and back-references, outside of classes and escapes; classes without end."""
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        token = match.group()
        if text.startswith(_LOOK_AROUND, position):
            raise SpecError("look-ahead and look-behind are not supported in expressions", pointer)
        if len(token) == 2 and token[0] == "\\" and token[1] in "123456789k":
            raise SpecError(f"back-references such as {token} are not supported in expressions", pointer)
        if token == "[":
            raise SpecError("invalid regex: unclosed character class", pointer)
        position = match.end()


def explain_expression(message: str) -> str | None:
    """Our words for what the library's expression parser says; None when it is about something else."""
    if "look-around" in message:
        return "look-ahead and look-behind are not supported in expressions"
    if "lookarounds" in message:
        return r"word boundaries (\b, \B) and anchors in the middle are not supported in expressions"
    if "backreferences" in message:
        return "back-references are not supported in expressions"
    if "Unicode propert" in message or "property not found" in message:
        return r"invalid regex: unknown Unicode property in \p"
    if "regex parse error" in message or "invalid regex" in message:
        reasons = [line[len("error: ") :] for line in message.splitlines() if line.startswith("error: ")]
        return f"invalid regex: {reasons[0] if reasons else 'it cannot be parsed'}"
    return None
