"""References inside a schema: where they lead, and how deep the library's walk goes through them.

Owns: resolving local references (RFC 6901), the bound on levels.
Does not own: keywords and their values (json_schema.py).
Invariant: a reference that leads anywhere but to a schema of the same document is refused; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag

from octavo.grammar.json_schema import DEFINITIONS, inner_schemas
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError, child, shown


class ReferenceGraph:
    """The parts of a schema that are referred to, and the whole; raises SpecError for references that lead nowhere.

    `heights`: part -> schemas within schemas of it, without other parts. `edges`: part -> parts it holds or refers to.
    """

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self._schemas: dict[str, object] = {}
        """Pointer -> schema."""
        self._anchors: dict[str, str] = {}
        self._base = urldefrag(schema.get("$id", "")).url if isinstance(schema, dict) else ""
        self._read(schema)
        self._targets = {
            pointer: self._resolve(node["$ref"], child(pointer, "$ref"))
            for pointer, node in self._schemas.items()
            if isinstance(node, dict) and "$ref" in node
        }
        """Pointer of a schema that refers -> pointer of the schema it refers to."""
        self._parts = {"", *self._targets.values()}
        self.heights: dict[str, int] = {}
        self.edges: dict[str, set[str]] = {}
        for part in self._parts:
            self._measure(part)

    def _read(self, schema: dict[str, Any] | bool) -> None:
        stack: list[tuple[object, str]] = [(schema, "")]
        while stack:
            node, pointer = stack.pop()
            self._schemas[pointer] = node
            if isinstance(node, dict):
                if "$anchor" in node:
                    self._anchors[node["$anchor"]] = pointer
                stack += [(inner, where) for _, inner, where in inner_schemas(node, pointer)]

    def _resolve(self, reference: str, where: str) -> str:
        url, fragment = urldefrag(reference)
        if url not in ("", self._base):
            raise SpecError(f"{shown(reference)} leads out of the schema; nothing is fetched", where)
        fragment = unquote(fragment)
        target = fragment if fragment[:1] in ("", "/") else self._anchors.get(fragment)
        if target not in self._schemas:
            raise SpecError(f"{shown(reference)} leads to no schema in this document", where)
        assert target is not None
        return target

    def _measure(self, part: str) -> None:
        height = 0
        edges = set()
        stack = [(self._schemas[part], part, 1)]
        while stack:
            node, pointer, level = stack.pop()
            height = max(height, level)
            if pointer in self._targets:
                edges.add(self._targets[pointer])
            if isinstance(node, dict):
                for keyword, inner, where in inner_schemas(node, pointer):
                    if keyword in DEFINITIONS:
                        continue
                    if where in self._parts:
                        edges.add(where)
                    else:
                        stack.append((inner, where, level + 1))
        self.heights[part] = height
        self.edges[part] = edges


def check_levels(schema: dict[str, Any] | bool, limits: GrammarLimits) -> None:
    """Bound the depth of a walk that follows each reference once. Raises SpecError.

    Parts off all cycles count by the longest way through them, parts on cycles all together.
    """
    graph = ReferenceGraph(schema)
    below = longest_ways(graph.heights, graph.edges)
    rest = {part: height for part, height in graph.heights.items() if part not in below}
    callers: dict[str, set[str]] = {part: set() for part in rest}
    for part in rest:
        for target in graph.edges[part] & rest.keys():
            callers[target].add(part)
    above = longest_ways(rest, callers)
    on_cycles = sum(height for part, height in rest.items() if part not in above)
    levels = max(below.values(), default=0) + max(above.values(), default=0) + on_cycles
    if levels > limits.max_schema_levels:
        raise SpecError(
            f"schemas nest {levels} deep, counted through $ref; at most {limits.max_schema_levels} are taken", ""
        )


def longest_ways(heights: Mapping[str, int], edges: Mapping[str, set[str]]) -> dict[str, int]:
    """Part -> height of the longest way that begins there, for parts from which no cycle can be reached."""
    callers: dict[str, list[str]] = {part: [] for part in heights}
    num_open = {part: len(edges[part]) for part in heights}
    for part in heights:
        for target in edges[part]:
            callers[target].append(part)
    longest = dict.fromkeys(heights, 0)
    done: dict[str, int] = {}
    ready = [part for part, count in num_open.items() if count == 0]
    while ready:
        part = ready.pop()
        done[part] = longest[part] + heights[part]
        for caller in callers[part]:
            longest[caller] = max(longest[caller], done[part])
            num_open[caller] -= 1
            if num_open[caller] == 0:
                ready.append(caller)
    return done
