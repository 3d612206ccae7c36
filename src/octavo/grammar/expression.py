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
    r"""\\(?:[pPxuU]\{[^}]*\}|.)       # an escape
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]   # a class
      | \(\?(?:P?<[A-Za-z_]\w*>|[a-zA-Z-]*:)|\(\?[a-zA-Z-]+\)|\(   # a group's head, or flags
      | [)|*+?]
      | \{\d{1,9}(?:,\d{0,9})?\}
      | .
    """,
    re.VERBOSE | re.DOTALL,
)


def check_expression(text: str, limits: GrammarLimits, pointer: str | None = None) -> int:
    """The size with all repetitions written out. Raises SpecError. Cost: one pass."""
    if not text:
        raise SpecError("the expression is empty", pointer)
    _refuse_constructs(text, pointer)
    groups: list[int] = []
    """Sizes of the groups that are open, without what is in the innermost one."""
    size, last = 0, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == ")":
            if not groups:
                raise SpecError("invalid regex: a group is closed that was not opened", pointer)
            last, size = size, groups.pop() + size
        elif token[0] == "(" and not token.endswith(")"):
            groups.append(size)
            size, last = 0, 0
            if len(groups) > limits.max_depth:
                raise SpecError(f"invalid regex: groups nest deeper than {limits.max_depth}", pointer)
        elif (count := _COUNT.fullmatch(token)) is not None:
            times = max(int(count[1]), int(count[2] or 0), 1)
            size, last = size + last * (times - 1), last * times
        elif token not in ("|", "*", "+", "?") and token[0] != "(":
            size, last = size + 1, 1
        if size > limits.max_expression_size:
            raise SpecError(
                f"the expression has more than {limits.max_expression_size} characters with its repetitions written "
                "out; use smaller counts, or * and +",
                pointer,
            )
    if groups:
        raise SpecError("invalid regex: a group is not closed", pointer)
    return size


def _refuse_constructs(text: str, pointer: str | None) -> None:
    """Look-around and back-references, outside of classes and escapes."""
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        token = match.group()
        if text.startswith(_LOOK_AROUND, position):
            raise SpecError("look-ahead and look-behind are not supported in expressions", pointer)
        if len(token) == 2 and token[0] == "\\" and token[1] in "123456789k":
            raise SpecError(f"back-references such as {token} are not supported in expressions", pointer)
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
