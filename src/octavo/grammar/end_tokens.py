"""End tokens in the markers of a structural tag: one ends the text, so nothing may come behind it.

Owns: which constant texts of a structural tag are its last, and the refusal of an end token in all others.
Does not own: what a tag must look like (tags.py reports what is wrong in it: what is no tag is passed over here).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from octavo.grammar.problem import SpecError, child

FindEnd = Callable[[str], int | None]
"""A marker -> where its first end token ends; None: it has none."""


def check_end_tokens(document: object, find_end: FindEnd) -> None:
    """Raises SpecError where a structural tag goes on behind an end token. Cost: one pass over its markers."""
    if not isinstance(document, dict):
        return
    walk = _Walk(find_end)
    if "format" in document:
        walk.check_format(document["format"], "/format", is_last=True)
        return
    # Free text always follows in the other form.
    walk.check_text(document.get("triggers"), "/triggers", is_last=False)
    walk.check_tags(document.get("structures"), "/structures", is_last=False)


class _Walk:
    """is_last: nothing can come behind the part."""

    def __init__(self, find_end: FindEnd) -> None:
        self._find_end = find_end

    def check_text(self, value: object, at: str, *, is_last: bool) -> None:
        """A constant text, or a list of such."""
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            end = self._find_end(text)
            if end is not None and not (is_last and end == len(text)):
                raise SpecError("holds a token that ends the text, behind which the structural tag goes on", at)

    def check_tags(self, tags: object, at: str, *, is_last: bool) -> None:
        for index, tag in enumerate(tags if isinstance(tags, list) else ()):
            if isinstance(tag, dict):
                self._check_tag(tag, child(at, index), is_last=is_last)

    def check_format(self, node: object, at: str, *, is_last: bool) -> None:
        if not isinstance(node, dict):
            return
        kind = node.get("type")
        if kind == "const_string":
            self.check_text(node.get("value"), child(at, "value"), is_last=is_last)
        elif kind == "tag":
            self._check_tag(node, at, is_last=is_last)
        elif kind in ("sequence", "or"):
            self._check_elements(node, child(at, "elements"), is_last=is_last)
        elif kind in ("triggered_tags", "tags_with_separator"):
            self.check_text(node.get("triggers"), child(at, "triggers"), is_last=False)
            self.check_text(node.get("separator"), child(at, "separator"), is_last=False)
            is_only = node.get("stop_after_first") is True
            self.check_tags(node.get("tags"), child(at, "tags"), is_last=is_last and is_only)
        elif kind in ("optional", "star", "plus"):
            self.check_format(node.get("content"), child(at, "content"), is_last=is_last and kind == "optional")

    def _check_tag(self, tag: dict[str, Any], at: str, *, is_last: bool) -> None:
        ends_itself = bool(tag.get("end"))
        self.check_text(tag.get("begin"), child(at, "begin"), is_last=False)
        self.check_format(tag.get("content"), child(at, "content"), is_last=is_last and not ends_itself)
        self.check_text(tag.get("end"), child(at, "end"), is_last=is_last)

    def _check_elements(self, node: dict[str, Any], at: str, *, is_last: bool) -> None:
        elements = node.get("elements")
        if not isinstance(elements, list):
            return
        for index, element in enumerate(elements):
            is_final = node["type"] == "or" or index == len(elements) - 1
            self.check_format(element, child(at, index), is_last=is_last and is_final)
