"""Constraints and tools that must be refused, or taken within their caps, by fault case; see bad_requests.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakes.bad_requests import CHAT, COMPLETIONS, Probe, each, fine

OK_OR_REFUSED = (200, 400)


def structured(value: dict[str, Any], statuses: tuple[int, ...] = (400,)) -> list[Probe]:
    """On both routes; a refusal names the field."""
    body = {"structured_outputs": value}
    return [Probe(body, "structured_outputs", statuses, route) for route in (COMPLETIONS, CHAT)]


def tool(name: Any, parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {}}}


def s50(_v: int, _l: int) -> list[Probe]:
    bad = ("[", "(?<=a)b", "(a)\\1", "\\p{Foo}", "a" * (1 << 20))
    return [
        *(probe for regex in bad for probe in structured({"regex": regex})),
        *each("guided_regex", "[", 5),
        *fine({"structured_outputs": {"regex": "a+"}}, {"guided_regex": "a|b"}),
    ]


def s51(_v: int, _l: int) -> list[Probe]:
    slow = ("(a+)+b", "(a|aa)*c", "((a{1,500}){1,500}){1,500}", ".{0,100000}x")
    return [probe for regex in slow for probe in structured({"regex": regex}, OK_OR_REFUSED)]


def s52(_v: int, _l: int) -> list[Probe]:
    bad: list[Any] = [
        {"type": "stsring"},
        {"type": "string", "pattern": "{"},
        {"type": "object", "properties": {"a": {"type": ["x"]}}},
    ]
    wrapped = [{"type": "json_schema", "json_schema": {"name": "x", "schema": schema}} for schema in bad]
    return [
        *(probe for schema in [*bad, "not json"] for probe in structured({"json": schema})),
        *each("guided_json", *bad, "not json"),
        *each("response_format", *wrapped, route=CHAT),
        *each("tools", *([tool("f", schema)] for schema in bad), route=CHAT, tool_choice="required"),
        *each("tools", [tool("f", bad[0])], [tool("f", bad[2])], route=CHAT, tool_choice="none"),
        *each("tools", [tool("f", "not json")], route=CHAT, tool_choice="none"),
    ]


def s53(_v: int, _l: int) -> list[Probe]:
    deep = "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000
    many = "\n".join(['root ::= "a"', *(f'r{i} ::= "b"' for i in range(40_000))])
    return [
        *(probe for grammar in (deep, many, "root ::= (", "{") for probe in structured({"grammar": grammar})),
        *structured({"grammar": 'root ::= root "a" | "a"'}, OK_OR_REFUSED),
        *each("guided_grammar", "root ::= (", 5),
    ]


def s55(_v: int, _l: int) -> list[Probe]:
    cycle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    remote = ({"$ref": "http://127.0.0.1:9/x.json"}, {"$ref": "file:///etc/passwd"})
    return [
        *(probe for schema in ({"$ref": "#"}, cycle) for probe in structured({"json": schema}, OK_OR_REFUSED)),
        *(probe for schema in remote for probe in structured({"json": schema})),
        *each("tools", [tool("f", remote[0])], route=CHAT, tool_choice="required"),
    ]


def s56(_v: int, _l: int) -> list[Probe]:
    bad: list[dict[str, Any]] = [
        {"regex": ""}, {"choice": []}, {"choice": [""]}, {"json": ""}, {"json": None}, {}, {"regexp": "a"},
        {"regex": "a", "json": {}}, {"regex": "a", "backend": "none/such"}, {"json_object": False}, {"choice": "ab"},
    ]  # fmt: skip
    two = {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}}
    return [
        *(probe for value in bad for probe in structured(value)),
        Probe(two, None),
        Probe({"guided_regex": "a", "guided_choice": ["b"]}, None),
        *each("guided_choice", [], [""], "ab"),
        *each("guided_decoding_backend", "none/such"),
        *fine({"guided_json_object": False}, {"guided_decoding_backend": "xgrammar"}),
    ]


def s59(_v: int, _l: int) -> list[Probe]:
    unsound: list[dict[str, Any]] = [
        {"enum": []},
        {"type": "number", "multipleOf": 0},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"type": "array", "uniqueItems": True},
        {"not": {"type": "string"}},
    ]
    sound: list[dict[str, Any]] = [
        {"enum": [1, "a", None, True, {"b": [-0.0]}]},
        {"type": "object", "properties": {'a"\n': {"type": "null"}}, "patternProperties": {"^x": {"type": "null"}}},
    ]
    return [probe for schema in unsound for probe in structured({"json": schema})] + [
        probe for schema in sound for probe in structured({"json": schema}, OK_OR_REFUSED)
    ]


def s60(_v: int, _l: int) -> list[Probe]:
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    return [
        *each("response_format", schema, {"type": "foo"}, {}, "json", 5, route=CHAT),
        *each("response_format", schema, {"type": "foo"}, {}),
        *fine({"response_format": {"type": "text"}}, {"response_format": {"type": "json_object"}}, route=CHAT),
    ]


def s61(_v: int, _l: int) -> list[Probe]:
    named = {"type": "function", "function": {"name": "g"}}
    none = {"tool_choice": "none"}
    return [
        *each("tool_choice", named, "any", 5, {}, route=CHAT, tools=[tool("f")]),
        *each("tool_choice", "required", named, route=CHAT),
        Probe({"tools": [tool("f")]}, "tool_choice", route=CHAT),  # this model has no form for calls
        Probe({"tools": [], "tool_choice": "required"}, "tools", route=CHAT),
        *each("tools", [tool("a\nb")], [tool("n" * 10_240)], [tool("f"), tool("f")], [tool(None)], route=CHAT, **none),
        *each("tools", [tool(f"f{i}") for i in range(10_000)], [tool("f", {"a": "x" * 2**21})], route=CHAT, **none),
    ]


def s62(_v: int, _l: int) -> list[Probe]:
    named = {"type": "function", "function": {"name": "f"}}
    return [
        Probe(
            {"tools": [tool("f")], "tool_choice": choice, "max_tokens": size, "stream": stream},
            statuses=(200,),
            route=CHAT,
        )
        for choice in ("required", named)
        for size in (1, 20)
        for stream in (False, True)
    ]


PROBES: dict[str, Callable[[int, int], list[Probe]]] = {
    "S50": s50, "S51": s51, "S52": s52, "S53": s53, "S55": s55, "S56": s56, "S59": s59, "S60": s60, "S61": s61,
    "S62": s62,
}  # fmt: skip
"""Case -> (V, L) -> its requests."""
