"""Grammars that a request brings along: Lark as the library reads it, or GBNF, which is rewritten to it.

Owns: the limits of such a text, the directives and attributes that are taken.
Does not own: the syntax itself (the library's), schemas inside (json_schema.py).
"""

from __future__ import annotations

import json
import re
from typing import Final

from llguidance import regex_to_lark

from octavo.grammar.expression import LongestWay, check_expression
from octavo.grammar.gbnf import gbnf_to_lark, is_gbnf
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.prepared_schema import prepare_schema
from octavo.grammar.problem import SpecError, shown

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\f]+)
      | (?P<newline>\n)
      | (?P<comment>(?://|\#)[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*+"i?)
      | (?P<regex>/(?!/)(?:\\.|[^/\\\n])++/[imslux]*)
      | (?P<open>["/])
      | (?P<special><[^<>\s]+>)
      | (?P<directive>%[A-Za-z]+)
      | (?P<name>[!?]?[A-Za-z_][\w-]*)
      | (?P<count>\{\s*+\d*+\s*+(?:,\s*+\d*+\s*+)?\}|~\s*\d+(?:\s*\.\.\s*\d+)?)
      | (?P<number>\d+)
      | (?P<mark>::=|->|\.\.|.)
    """,
    re.VERBOSE,
)
_NESTING: Final = re.compile(r'(?://|#)[^\n]*|"(?:\\.|[^"\\\n])*+"?|/(?:\\.|[^/\\\n])++/?|[(\[{]|[)\]}]')
"""Brackets, and what may hold characters that look like them: to the end of the line where it does not end."""
_BLANKS: Final = re.compile(r"\s*+")
_DIRECTIVES: Final = ("%json", "%regex", "%ignore", "%import", "%llguidance")
_ATTRIBUTES: Final = ("capture", "lazy", "suffix")
_RULE_HEAD: Final = re.compile(r"(?P<attributes>\s*\[[^\]\n]*\])?\s*(?:\.\d+\s*)?:(?![:=])")
_DECODER: Final = json.JSONDecoder()


def prepare_grammar(text: str, limits: GrammarLimits) -> str:
    """The grammar in Lark. Raises SpecError."""
    if is_gbnf(text):
        text = gbnf_to_lark(text)
    _check_depth(text, limits)
    return _LarkCheck(text, limits).run()


def literal(text: str) -> str:
    """A constant text in Lark."""
    return json.dumps(text, ensure_ascii=False)


def expression_literal(pattern: str) -> str:
    """A regular expression in Lark; digits are those of ASCII, as in JSON schemas."""
    return "/" + regex_to_lark(pattern, "dw") + "/"


def _check_depth(text: str, limits: GrammarLimits) -> None:
    """No recursion, here or in the library, may go as deep as the text likes."""
    depth = 0
    for match in _NESTING.finditer(text):
        bracket = match.group()
        if bracket in "([{":
            depth += 1
            if depth > limits.max_depth:
                raise SpecError(f"brackets nest deeper than {limits.max_depth}")
        elif bracket in ")]}":
            depth = max(0, depth - 1)


class _LarkCheck:
    """One pass over a Lark text, which comes out as it was but for schemas, which are in normal form."""

    def __init__(self, text: str, limits: GrammarLimits) -> None:
        self._text = text
        self._limits = limits
        self._written: list[str] = []
        self._rules: dict[str, list[str]] = {}
        """Name -> its tokens that count for its size."""
        self._rule: list[str] = []
        self._name = ""
        self._num_branches = 0
        self._sizes: dict[str, int] = {}

    def run(self) -> str:
        """The text to hand over. Raises SpecError."""
        position = 0
        while (match := _TOKEN.match(self._text, position)) is not None:
            position = self._take(match)
        for name in self._rules:
            if name.isupper():
                self._size(name, ())
        return "".join(self._written)

    def _take(self, match: re.Match[str]) -> int:
        """Check one token; where to go on."""
        kind, token = match.lastgroup, match.group()
        if kind == "directive":
            return self._take_directive(token, match.end())
        if (
            kind == "name"
            and (head := _RULE_HEAD.match(self._text, match.end()))
            and self._is_line_start(match.start())
        ):
            self._begin_rule(token.lstrip("!?"), head["attributes"] or "")
        elif kind == "regex":
            size = check_expression(token[1:].rpartition("/")[0], self._limits)
            self._rule.append(str(size))
        elif kind == "open":
            what = "a string" if token == '"' else "an expression"
            raise SpecError(f"{what} is not closed: {shown(self._text[match.start() : match.start() + 20])}")
        elif kind == "string":
            self._check_literal(token)
            self._rule.append(str(len(token)))
        elif kind == "mark" and token == "|":
            self._num_branches += 1
            if self._num_branches > self._limits.max_branches and not self._name.isupper():
                raise SpecError(
                    f"the rule {shown(self._name)} has more than {self._limits.max_branches} alternatives; write them "
                    "as a terminal, whose name is upper case"
                )
            self._rule.append(token)
        elif kind in ("name", "count") or token in ("(", ")"):
            self._rule.append(token)
        self._written.append(token)
        return match.end()

    def _take_directive(self, token: str, end: int) -> int:
        if token not in _DIRECTIVES:
            raise SpecError(f"the directive {token} is not taken; these are: {', '.join(_DIRECTIVES)}")
        self._written.append(token)
        if token in ("%ignore", "%import"):
            return end
        blanks = _BLANKS.match(self._text, end)
        assert blanks is not None
        try:
            value, after = _DECODER.raw_decode(self._text, blanks.end())
        except (ValueError, RecursionError) as error:
            raise SpecError(f"{token} is not followed by JSON: {error}") from error
        if token == "%llguidance" and value != {}:
            raise SpecError("options of the grammar library are not taken from requests")
        if token == "%json":
            value = prepare_schema(value, self._limits).schema
        self._written.append(" " + json.dumps(value))
        return after

    def _begin_rule(self, name: str, attributes: str) -> None:
        if len(self._rules) >= self._limits.max_rules:
            raise SpecError(f"the grammar has more than {self._limits.max_rules} rules")
        for attribute in re.findall(r"[\[,]\s*(\w+)", attributes):
            if attribute not in _ATTRIBUTES:
                raise SpecError(f"the attribute {attribute} of rule {shown(name)} is not taken")
        self._rule = self._rules.setdefault(name, [])
        self._name, self._num_branches = name, 0

    def _check_literal(self, token: str) -> None:
        if len(token.encode()) > self._limits.max_literal_bytes:
            raise SpecError(f"a constant string has more than {self._limits.max_literal_bytes} bytes")

    def _is_line_start(self, position: int) -> bool:
        return not self._text[self._text.rfind("\n", 0, position) + 1 : position].strip()

    def _size(self, name: str, above: tuple[str, ...]) -> int:
        """Longest way through a terminal, with what it names and repeats written out."""
        if name in self._sizes or name not in self._rules:
            return self._sizes.get(name, 1)
        if len(above) > self._limits.max_depth or name in above:
            raise SpecError(
                f"the terminal {name} leads to itself, or through more than {self._limits.max_depth} others"
            )
        ways = LongestWay()
        for token in self._rules[name]:
            if token == "(":
                ways.open()
            elif token == ")":
                ways.close()
            elif token == "|":
                ways.branch()
            elif token[0] in "{~":
                ways.repeat(max([1, *map(int, re.findall(r"\d{1,9}", token))]))
            else:
                ways.add(int(token) if token.isdigit() else self._size(token, (*above, name)))
            if ways.length > self._limits.max_expression_size:
                raise SpecError(
                    f"the terminal {name} has more than {self._limits.max_expression_size} characters with its "
                    "repetitions written out"
                )
        self._sizes[name] = ways.length
        return ways.length
