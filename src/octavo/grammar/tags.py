"""Structural tags: free text in which marked parts are constrained, written as Lark.

Owns: both forms that clients send: {"structures": [...], "triggers": [...]} and {"format": {...}}.
Does not own: schemas inside (json_schema.py), what a text of the tokenizer's is (the `SpecialTokens` given).
Invariant: free text ends where a trigger begins, so a part that has begun is constrained. Special tokens in markers are
matched as tokens, everything else as text, however it is cut into tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from octavo.grammar.expression import check_expression
from octavo.grammar.lark import expression_literal, literal
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError, child, shown

ANY_TEXT: Final = "/(?s:.*)/"
Piece = str | int
"""Text, or the id of a special token."""
Split = Callable[[str], list[Piece]]
"""A marker -> its text and special tokens, in order."""
Prepare = Callable[[object, str], dict[str, Any]]
"""(schema, its pointer) -> the schema as the library takes it, options included. Raises SpecError."""


def tags_to_lark(document: object, split: Split, prepare: Prepare, limits: GrammarLimits) -> str:
    """The Lark text of a structural tag. Raises SpecError."""
    return _TagWriter(split, prepare, limits).write(document)


class _TagWriter:
    """Writes rules as it goes down; each method returns an expression that stands for what it read."""

    def __init__(self, split: Split, prepare: Prepare, limits: GrammarLimits) -> None:
        self._split_marker = split
        self._prepare = prepare
        self._limits = limits
        self._rules: list[str] = []
        self._writers: Mapping[str, Callable[[dict[str, Any], str], str]] = {
            "const_string": self._const_string,
            "any_text": self._any_text,
            "json_schema": self._json_schema,
            "regex": self._regex,
            "sequence": self._sequence,
            "or": self._or,
            "tag": self._tag,
            "triggered_tags": self._triggered_tags,
            "tags_with_separator": self._tags_with_separator,
            "optional": lambda node, at: f"({self._inner(node, at)})?",
            "star": lambda node, at: f"({self._inner(node, at)})*",
            "plus": lambda node, at: f"({self._inner(node, at)})+",
        }

    def write(self, document: object) -> str:
        if not isinstance(document, dict) or document.get("type", "structural_tag") != "structural_tag":
            raise SpecError('must be an object of type "structural_tag"', "")
        if "format" in document:
            start = self._format(document["format"], "/format")
        elif "structures" in document:
            start = self._structures(document)
        else:
            raise SpecError("needs format, or structures and triggers", "")
        return "\n".join([f"start: {start}", *self._rules])

    def _structures(self, document: dict[str, Any]) -> str:
        tags = []
        for index, node in enumerate(_list(document, "structures", "")):
            at = child("/structures", index)
            if not isinstance(node, dict):
                raise SpecError("must be an object with begin, schema and end", at)
            rest = [self._schema(node, "schema", at), *self._ends(node, at)]
            tags += [(begin, " ".join(rest), at) for begin in self._begins(node, at)]
        return self._dispatch(tags, _strings(document, "triggers", ""), needs_one=False, only_one=False)

    def _format(self, node: object, at: str) -> str:
        if not isinstance(node, dict):
            raise SpecError("must be an object with a type", at)
        kind = node.get("type")
        writer = self._writers.get(kind) if isinstance(kind, str) else None
        if writer is None:
            raise SpecError(
                f"the format {shown(kind)} is not supported; these are: {', '.join(self._writers)}",
                child(at, "type"),
            )
        return writer(node, at)

    def _split(self, text: str) -> list[Piece]:
        if len(text.encode()) > self._limits.max_literal_bytes:
            raise SpecError(f"a constant text has more than {self._limits.max_literal_bytes} bytes", "")
        return self._split_marker(text)

    def _inner(self, node: dict[str, Any], at: str) -> str:
        return self._format(node.get("content"), child(at, "content"))

    def _const_string(self, node: dict[str, Any], at: str) -> str:
        return self._marker(_text(node, "value", at))

    def _any_text(self, node: dict[str, Any], at: str) -> str:
        if node.get("excludes"):
            raise SpecError("excludes is not supported", child(at, "excludes"))
        return self._rule(ANY_TEXT)

    def _json_schema(self, node: dict[str, Any], at: str) -> str:
        if node.get("style", "json") != "json":
            raise SpecError(f"the style {shown(node['style'])} is not supported", child(at, "style"))
        return self._schema(node, "json_schema", at)

    def _schema(self, node: dict[str, Any], key: str, at: str) -> str:
        if key not in node:
            raise SpecError(f"needs {key}", at)
        schema = self._prepare(node[key], child(at, key))
        return self._rule(f"%json {json.dumps(schema)}")

    def _regex(self, node: dict[str, Any], at: str) -> str:
        pattern = _text(node, "pattern", at)
        check_expression(pattern, self._limits, child(at, "pattern"))
        return self._rule(expression_literal(pattern))

    def _sequence(self, node: dict[str, Any], at: str) -> str:
        return " ".join(self._elements(_list(node, "elements", at), child(at, "elements"), []))

    def _elements(self, elements: Sequence[object], at: str, ends: list[list[Piece]]) -> list[str]:
        """Expressions in order, then one of `ends`. Free text runs up to the constant text or token behind it."""
        written: list[str] = []
        index = 0
        while index < len(elements):
            node, where = elements[index], child(at, index)
            following = elements[index + 1] if index + 1 < len(elements) else None
            index += 1
            if not _is_open(node) or (following is None and not ends):
                written.append(self._format(node, where))
                continue
            if isinstance(node, dict) and node.get("type") == "any_text" and not node.get("excludes"):
                if following is None:
                    return [*written, self._until(ends)]
                if isinstance(following, dict) and following.get("type") == "const_string":
                    written.append(self._until([self._split(_text(following, "value", child(at, index)))]))
                    index += 1
                    continue
            raise SpecError("free text must come last, or before a const_string or the end of its tag", where)
        return [*written, *self._one_of(ends)]

    def _or(self, node: dict[str, Any], at: str) -> str:
        elements = _list(node, "elements", at)
        inner = [self._format(element, child(at, "elements", index)) for index, element in enumerate(elements)]
        return self._rule(" | ".join(inner))

    def _tag(self, node: dict[str, Any], at: str) -> str:
        rest = self._content(node, at)
        return self._rule(" | ".join(f"{self._marker(begin)} {rest}" for begin in self._begins(node, at)))

    def _tags(self, node: dict[str, Any], at: str) -> list[tuple[str, str, str]]:
        """(beginning, expression for what follows it, pointer) of each tag."""
        tags = []
        for index, tag in enumerate(_list(node, "tags", at)):
            where = child(at, "tags", index)
            if not isinstance(tag, dict) or tag.get("type", "tag") != "tag":
                raise SpecError("must be an object of type tag", where)
            rest = self._content(tag, where)
            tags += [(begin, rest, where) for begin in self._begins(tag, where)]
        return tags

    def _triggered_tags(self, node: dict[str, Any], at: str) -> str:
        if node.get("excludes"):
            raise SpecError("excludes is not supported", child(at, "excludes"))
        return self._dispatch(
            self._tags(node, at),
            _strings(node, "triggers", at),
            needs_one=_flag(node, "at_least_one", at),
            only_one=_flag(node, "stop_after_first", at),
        )

    def _tags_with_separator(self, node: dict[str, Any], at: str) -> str:
        tag = self._rule(" | ".join(f"{self._marker(begin)} {rest}" for begin, rest, _ in self._tags(node, at)))
        separator = node.get("separator", "")
        if not isinstance(separator, str):
            raise SpecError("separator must be a string", child(at, "separator"))
        more = "" if _flag(node, "stop_after_first", at) else f" ({self._marker(separator)} {tag})*"
        return f"({tag}{more})" + ("" if _flag(node, "at_least_one", at) else "?")

    def _dispatch(
        self, tags: Sequence[tuple[str, str, str]], triggers: Sequence[str], *, needs_one: bool, only_one: bool
    ) -> str:
        """Free text, in which one of `tags` must follow each trigger. With `needs_one` a tag comes first of all."""
        groups = []
        left = list(tags)
        for trigger in sorted(triggers, key=len, reverse=True):
            mine = [(begin, rest) for begin, rest, _ in left if begin.startswith(trigger)]
            left = [tag for tag in left if not tag[0].startswith(trigger)]
            if mine:
                bodies = " | ".join(f"{self._marker(begin[len(trigger) :])} {rest}" for begin, rest in mine)
                groups.append(self._rule(f"{self._until([self._split(trigger)])} ({bodies})"))
        if left:
            raise SpecError(f"{shown(left[0][0])} begins with none of the triggers", child(left[0][2], "begin"))
        first = self._rule(" | ".join(f"{self._marker(begin)} {rest}" for begin, rest, _ in tags))
        text, any_group = self._rule(ANY_TEXT), self._rule(" | ".join(groups))
        if only_one:
            return first if needs_one else f"({any_group} | {text})"
        return f"{first if needs_one else ''} {any_group}* {text}"

    def _begins(self, node: dict[str, Any], at: str) -> list[str]:
        given = node.get("begin")
        begins = [text for text in (given if isinstance(given, list) else [given]) if isinstance(text, str) and text]
        if not begins or len(begins) != (len(given) if isinstance(given, list) else 1):
            raise SpecError("begin must be a string that is not empty", child(at, "begin"))
        return begins

    def _ends(self, node: dict[str, Any], at: str) -> list[str]:
        return self._one_of(self._end_pieces(node, at))

    def _end_pieces(self, node: dict[str, Any], at: str) -> list[list[Piece]]:
        ends = node["end"] if isinstance(node.get("end"), list) else [node.get("end", "")]
        if not ends or not all(isinstance(text, str) for text in ends) or (len(ends) > 1 and "" in ends):
            raise SpecError("end must be a string", child(at, "end"))
        return [self._split(text) for text in ends if text]

    def _content(self, node: dict[str, Any], at: str) -> str:
        """What stands behind the beginning of a tag."""
        content, where = node.get("content"), child(at, "content")
        ends = self._end_pieces(node, at)
        if isinstance(content, dict) and content.get("type") == "any_text" and ends and not content.get("excludes"):
            return self._until(ends)
        if ends and _is_open(content):
            raise SpecError("free text must come last, or before a const_string or the end of its tag", where)
        return " ".join([self._format(content, where), *self._one_of(ends)])

    def _until(self, markers: Sequence[Sequence[Piece]]) -> str:
        """Free text up to the first of some markers, which are taken too."""
        options = []
        for head, *rest in markers:
            if isinstance(head, str):
                # A lazy rule ends where it first can: free text cannot run over the marker.
                options.append(f"{self._rule(f'{ANY_TEXT} {literal(head)}', lazy=True)} {_joined(rest)}")
            else:
                options.append(f"{self._rule(ANY_TEXT)}? {_joined([head, *rest])}")
        return self._rule(" | ".join(options))

    def _one_of(self, markers: Sequence[Sequence[Piece]]) -> list[str]:
        return [f"({' | '.join(map(_joined, markers))})"] if markers else []

    def _marker(self, text: str) -> str:
        return _joined(self._split(text)) if text else '""'

    def _rule(self, body: str, *, lazy: bool = False) -> str:
        name = f"r{len(self._rules)}"
        if len(self._rules) >= self._limits.max_tag_rules:
            raise SpecError(f"the structural tag has more than {self._limits.max_tag_rules} parts", "")
        self._rules.append(f"{name}{'[lazy]' if lazy else ''}: {body}")
        return name


def _joined(pieces: Sequence[Piece]) -> str:
    return " ".join(literal(piece) if isinstance(piece, str) else f"<[{piece}]>" for piece in pieces)


def _is_open(node: object) -> bool:
    """Free text may run on at its end, so nothing can be told to follow it."""
    if not isinstance(node, dict):
        return False
    kind, elements = node.get("type"), node.get("elements")
    if kind in ("any_text", "triggered_tags"):
        return True
    if kind == "sequence":
        return isinstance(elements, list) and bool(elements) and _is_open(elements[-1])
    if kind == "or":
        return isinstance(elements, list) and any(map(_is_open, elements))
    if kind == "tag":
        return not node.get("end") and _is_open(node.get("content"))
    return kind in ("optional", "star", "plus") and _is_open(node.get("content"))


def _list(node: Mapping[str, Any], key: str, at: str) -> list[object]:
    value = node.get(key)
    if not isinstance(value, list) or not value:
        raise SpecError(f"{key} must be a list that is not empty", child(at, key))
    return value


def _strings(node: Mapping[str, Any], key: str, at: str) -> list[str]:
    values = _list(node, key, at)
    if not all(isinstance(value, str) and value for value in values):
        raise SpecError(f"{key} must be strings that are not empty", child(at, key))
    return values  # type: ignore[return-value]


def _text(node: Mapping[str, Any], key: str, at: str) -> str:
    value = node.get(key)
    if not isinstance(value, str) or not value:
        raise SpecError(f"{key} must be a string that is not empty", child(at, key))
    return value


def _flag(node: Mapping[str, Any], key: str, at: str) -> bool:
    value = node.get(key, False)
    if not isinstance(value, bool):
        raise SpecError(f"{key} must be true or false", child(at, key))
    return value
