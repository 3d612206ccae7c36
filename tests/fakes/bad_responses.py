"""The fault cases of bad_requests.py and bad_constraints.py in the words of the Responses API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakes.bad_requests import FLOATS, HUGE, RESPONSES, Probe, each, fine, literal

OK_OR_REFUSED = (200, 400)


def bad(name: str, *values: Any, **others: Any) -> list[Probe]:
    return each(name, *values, route=RESPONSES, **others)


def taken(*bodies: dict[str, Any]) -> list[Probe]:
    return fine(*bodies, route=RESPONSES)


def tool(name: Any, parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": parameters}


def form(**fields: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", **fields}}


def s06(_v: int, _l: int) -> list[Probe]:
    return [literal(name, text, RESPONSES) for name in FLOATS for text in ("NaN", "Infinity", "1e400")]


def s11(_v: int, _l: int) -> list[Probe]:
    include = ["message.output_text.logprobs"]
    return [
        *bad("top_logprobs", 21, 4294967297, -1, 1.5, True, include=include),
        *bad("top_logprobs", 3),
        *bad("include", "x", [1], ["x"], {}),
        *taken({"include": include, "top_logprobs": 20}, {"include": include}),
    ]


def s13(_v: int, _l: int) -> list[Probe]:
    return [*bad("max_output_tokens", 0, -1, 2**31, 10**30, 1.5, "4"), *taken({"max_output_tokens": None, "stop": "e"})]


def s18(_v: int, _l: int) -> list[Probe]:
    return [
        *bad("stream", "yes", 1),
        *bad("input", 5, None, {}, [], [1], ["x"], [[]]),
        *bad("metadata", {"a": 1}, [], {"a": "x" * 513}, {str(number): "" for number in range(17)}),
        *bad("truncation", "some", 1),
        *bad("reasoning", "low", {"effort": 5}, {"effort": "x" * 10_000}),
        *bad("text", "json", {"verbosity": "loud"}, {"format": "json"}),
        *bad("store", "x"),
        *bad("background", True, "x"),
        Probe({"stream_options": {"include_obfuscation": False}}, "stream_options", route=RESPONSES),
    ]


def s19(_v: int, _l: int) -> list[Probe]:
    names = ("max_output_tokens", "max_tool_calls", "seed", "top_k", "priority", "top_logprobs")
    return [Probe({name: value}, None, OK_OR_REFUSED, RESPONSES) for name in names for value in HUGE]


def s22(_v: int, _l: int) -> list[Probe]:
    control = "".join(map(chr, range(32)))
    bodies = (b'"\\ud800"', b'"\xff"', b'[{"role":"user","content":"\\udc00"}]')
    return [
        *taken({"input": "a\0b", "instructions": control, "metadata": {control: control}}),
        *(Probe(b'{"max_output_tokens":1,"input":' + body + b"}", None, OK_OR_REFUSED, RESPONSES) for body in bodies),
    ]


def s48(_v: int, _l: int) -> list[Probe]:
    wrong: tuple[dict[str, Any], ...] = (
        {},
        {"role": "foo", "content": "x"},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "input_image", "image_url": "http://127.0.0.1:1/x"}]},
        {"role": "user", "content": [{"type": "input_file", "file_url": "file:///etc/passwd"}]},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "mcp_call"},
        {"type": {}},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
        {"type": "function_call_output", "call_id": "c", "output": 5},
        {"type": "reasoning", "summary": [5]},
    )
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "not json"}
    lone = {"type": "function_call_output", "call_id": "never", "output": "x"}
    return [
        *bad("input", *([item] for item in wrong), [{"role": "user", "content": "x"}] * 10_000),
        *(Probe({"input": [item]}, None, OK_OR_REFUSED, RESPONSES) for item in (call, lone)),
    ]


def s52(_v: int, _l: int) -> list[Probe]:
    schemas: list[Any] = [{"type": "stsring"}, {"type": "object", "properties": {"a": {"type": ["x"]}}}]
    return [
        *bad("text", {"format": 5}),
        *[Probe({"text": form(name="x", schema=schema)}, "text.format", route=RESPONSES) for schema in [*schemas, "x"]],
        *bad("tools", *([tool("f", schema)] for schema in [*schemas, "x"]), tool_choice="required"),
        *bad("tools", *([tool("f", schema)] for schema in [*schemas, "x"]), tool_choice="none"),
    ]


def s60(_v: int, _l: int) -> list[Probe]:
    texts = (form(name="x"), {"format": {"type": "foo"}}, {"format": {}}, form(json_schema={"schema": {}}))
    return [
        *(Probe({"text": text}, "text.format", route=RESPONSES) for text in texts),
        *taken({"text": {"format": {"type": "text"}}}, {"text": {"format": {"type": "json_object"}}}, {"text": {}}),
    ]


def s61(_v: int, _l: int) -> list[Probe]:
    named, none = {"type": "function", "name": "g"}, {"tool_choice": "none"}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [named]}
    return [
        *bad("tool_choice", named, allowed, "any", 5, {}, {"type": "allowed_tools"}, tools=[tool("f")]),
        *bad("tool_choice", "required", named, allowed, tools=[]),
        Probe({"tools": [tool("f")]}, "tool_choice", route=RESPONSES),  # this model has no form for calls
        *bad(
            "tools", [tool("a\nb")], [tool("n" * 10_240)], [tool("f"), tool("f")], [tool(None)], [tool(["f"])], **none
        ),
        *bad("tools", [tool(f"f{i}") for i in range(10_000)], [tool("f", {"a": "x" * 2**21})], [{}], 5, **none),
    ]


def s62(_v: int, _l: int) -> list[Probe]:
    named = {"type": "function", "name": "f"}
    return taken(
        *(
            {"tools": [tool("f")], "tool_choice": choice, "max_output_tokens": size, "stream": stream}
            for choice in ("required", named)
            for size in (1, 20)
            for stream in (False, True)
        )
    )


PROBES: dict[str, Callable[[int, int], list[Probe]]] = {
    "S06": s06, "S11": s11, "S13": s13, "S18": s18, "S19": s19, "S22": s22, "S48": s48, "S52": s52, "S60": s60,
    "S61": s61, "S62": s62,
}  # fmt: skip
"""Case -> (V, L) -> its requests."""
