"""GBNF, the grammars of llama.cpp, rewritten as Lark.

Owns: its syntax: rules `name ::= ...`, strings, classes of characters, groups, repetitions, `#` comments.
Does not own: limits (lark.py).
Rules that lead to no rule again become terminals, so that the lexer reads them as one piece. Cost: linear in the text.
"""

from __future__ import annotations

import json
import re
from typing import Final

from octavo.grammar.problem import SpecError, shown

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<head>[A-Za-z_][\w-]*\s*::=)
      | (?P<name>[A-Za-z_][\w-]*)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<characters>(?:\[\^?(?:\\.|[^\]\\])*\]|\.)(?P<times>[*+?]|\{\s*+\d*+\s*+(?:,\s*+\d*+\s*+)?\})?)
      | (?P<mark>[()|*+?]|\{\s*+\d*+\s*+(?:,\s*+\d*+\s*+)?\})
    """,
    re.VERBOSE | re.DOTALL,
)
_CHARACTER: Final = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|.", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_HEAD: Final = re.compile(r"^[^\S\n]*+[A-Za-z_][\w-]*+\s*+::=", re.MULTILINE)


def is_gbnf(text: str) -> bool:
    """True when rules are written with `::=`."""
    return _HEAD.search(text) is not None


def gbnf_to_lark(text: str) -> str:
    """The same grammar in Lark. Raises SpecError."""
    rules = _read_rules(text)
    if "root" not in rules:
        raise SpecError("there is no rule root")
    for name, body in rules.items():
        for kind, token in body:
            if kind == "name" and token not in rules:
                raise SpecError(f"rule {shown(name)} names {shown(token)}, which is no rule")
    terminals = _terminals(rules)
    written = {
        name: re.sub(r"\W", "_", f"T_{name}_{index}".upper() if name in terminals else f"r_{name}_{index}".lower())
        for index, name in enumerate(rules)
    }
    written["root"] = "start"
    lines = []
    for name, body in rules.items():
        parts = [written[token] if kind == "name" else token for kind, token in body]
        lines.append(f"{written[name]}: {' '.join(parts) or literal_text('')}")
    return "\n".join(lines)


def literal_text(text: str) -> str:
    """A constant text in Lark."""
    return json.dumps(text, ensure_ascii=False)


def _read_rules(text: str) -> dict[str, list[tuple[str, str]]]:
    """Name -> (kind, token) of what it stands for, in Lark but for names."""
    rules: dict[str, list[tuple[str, str]]] = {}
    body: list[tuple[str, str]] | None = None
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SpecError(
                f"cannot be read as GBNF from line {text.count(chr(10), 0, position) + 1}: "
                f"{shown(text[position : position + 20])}"
            )
        position = match.end()
        kind, token = match.lastgroup or "", match.group()
        if match["characters"] is not None:
            kind = "characters"
        if kind == "space":
            continue
        if kind == "head":
            name = token.removesuffix("::=").strip()
            if name in rules:
                raise SpecError(f"rule {shown(name)} is there twice")
            body = rules[name] = []
            continue
        if body is None:
            raise SpecError(f"{shown(token)} stands before the first rule")
        body.append((kind, _rewrite(kind, token, match["times"])))
    return rules


def _rewrite(kind: str, token: str, times: str | None) -> str:
    if kind == "string":
        return literal_text("".join(_characters(token[1:-1])))
    if kind == "characters":
        inner = token[: len(token) - len(times or "")]
        # A repetition goes into the expression: one piece for the lexer instead of one for each character.
        return f"/{'(?s:.)' if inner == '.' else _class(inner)}{(times or '').replace(' ', '')}/"
    return token


def _class(token: str) -> str:
    """A class of characters as an expression."""
    inner = token[1:-1]
    is_negated = inner.startswith("^")
    pieces = _CHARACTER.findall(inner[1:] if is_negated else inner)
    if not pieces:
        raise SpecError("a class of characters is empty: []")
    written = []
    for index, piece in enumerate(pieces):
        is_range = piece == "-" and 0 < index < len(pieces) - 1
        written.append("-" if is_range else f"\\x{{{ord(_character(piece)):x}}}")
    return f"[{'^' if is_negated else ''}{''.join(written)}]"


def _characters(text: str) -> list[str]:
    return [_character(piece) for piece in _CHARACTER.findall(text)]


def _character(piece: str) -> str:
    if piece[0] != "\\" or len(piece) == 1:
        return piece
    if len(piece) > 2:
        code = int(piece[2:], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise SpecError(f"{piece} is no character")
        return chr(code)
    return _ESCAPES.get(piece[1], piece[1])


def _terminals(rules: dict[str, list[tuple[str, str]]]) -> set[str]:
    """Rules that name only rules of this kind, and so never themselves. The root is none."""
    callers: dict[str, list[str]] = {name: [] for name in rules}
    num_open = {}
    for name, body in rules.items():
        named = {token for kind, token in body if kind == "name"}
        num_open[name] = len(named)
        for other in named:
            callers[other].append(name)
    ready = [name for name, count in num_open.items() if count == 0]
    terminals = set()
    while ready:
        name = ready.pop()
        if name == "root":
            continue
        terminals.add(name)
        for caller in callers[name]:
            num_open[caller] -= 1
            if num_open[caller] == 0:
                ready.append(caller)
    return terminals
