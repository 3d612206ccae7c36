"""The tools of a request: their definitions, and which of them may, must or must not be called.

Owns: tools, tool_choice (OpenAI's forms, and the flat ones of Responses), parallel_tool_calls, bounds on number,
names and size.
Does not own: how calls are written and constrained (parsers), tool calls of earlier turns (messages.py).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from octavo.server.api.chat_types import ChatFields
from octavo.server.errors import ApiError, invalid_value
from octavo.server.tools_schema import find_fault

ToolChoice = Literal["none", "auto", "required", "named"]
Functions = Sequence[Mapping[str, Any]]
"""Definitions: the `function` of each tool."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What a request wants of its tools."""

    shown: list[dict[str, Any]] | None = None
    """Those that the template shows; None: none."""
    callable: Functions = ()
    """Definitions (the `function` of a tool) that may be called. Empty: what the model writes is text."""
    choice: ToolChoice = "none"
    parallel: bool = True
    """More than one call in an answer is passed on."""
    num_bytes: int = 0
    """Of the definitions of the request, as JSON."""
    names: Sequence[str] = ()
    """Of all tools of the request, in order."""

    @property
    def is_forced(self) -> bool:
        """True: the answer is a call."""
        return self.choice in ("required", "named")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """What a server takes in one request."""

    max_tools: int
    max_bytes: int
    """Of all definitions together, as JSON."""
    excludes_unused: bool
    """With tool_choice none the template does not see the tools."""


def new_call_id() -> str:
    """As vLLM names calls."""
    return f"chatcmpl-tool-{secrets.token_hex(16)}"


def read_tools(request: ChatFields, limits: ToolLimits) -> ToolUse:
    """Checked. Raises ApiError naming tools, tool_choice or an old field."""
    for name in ("functions", "function_call"):
        if getattr(request, name) is not None:
            raise ApiError(400, "unsupported_feature", f"{name}: was replaced by tools and tool_choice", param=name)
    choice, tools = request.tool_choice, request.tools
    if tools is None:
        if choice is not None and choice not in ("none", "auto"):
            raise invalid_value("tool_choice: there are no tools to choose from", "tool_choice")
        return ToolUse()
    num_bytes = _check_size(tools, limits)
    functions = _check_tools(tools)
    kind, chosen, shown = _read_choice(choice, functions)
    if kind == "none":
        return ToolUse() if limits.excludes_unused else ToolUse(shown=tools, num_bytes=num_bytes)
    names = {function["name"] for function in shown}
    return ToolUse(
        shown=[tool for tool in tools if tool["function"]["name"] in names],
        callable=chosen,
        choice=kind,
        parallel=kind != "named" and request.parallel_tool_calls is not False,
        num_bytes=num_bytes,
        names=[function["name"] for function in functions],
    )


def _read_choice(choice: str | dict[str, Any] | None, functions: Functions) -> tuple[ToolChoice, Functions, Functions]:
    """What must come, what may be called, what the template shows. Raises ApiError."""
    if choice is None:
        return "auto", functions, functions
    if choice in ("none", "auto", "required"):
        return choice, functions, functions  # type: ignore[return-value]
    if isinstance(choice, dict):
        if choice.get("type") == "allowed_tools":
            mode, allowed = _read_allowed(choice.get("allowed_tools", choice), functions)
            # The others are not shown either, so that the model does not think of calling them.
            return mode, allowed, allowed
        name = _named_by(choice)
        named = [function for function in functions if function["name"] == name]
        if named:
            return "named", named, functions
    remedy = (
        'must be "none", "auto", "required", {"type": "function", "function": {"name": one of the tools}} or '
        '{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}'
    )
    raise invalid_value(f"tool_choice: {remedy}", "tool_choice")


def _read_allowed(value: object, functions: Functions) -> tuple[ToolChoice, Functions]:
    """The choice among some of the tools. Raises ApiError."""
    field = "tool_choice.allowed_tools"
    mode, listed = (value.get("mode"), value.get("tools")) if isinstance(value, Mapping) else (None, None)
    if mode not in ("auto", "required"):
        raise invalid_value(f'{field}.mode={str(mode)[:40]!r}: must be "auto" or "required"', "tool_choice")
    if not isinstance(listed, list) or not listed:
        raise invalid_value(f"{field}.tools: must be a list of at least one tool", "tool_choice")
    by_name = {function["name"]: function for function in functions}
    allowed = set()
    for index, item in enumerate(listed):
        name = _named_by(item)
        if name not in by_name:
            raise invalid_value(f"{field}.tools[{index}]: is none of the tools of this request", "tool_choice")
        allowed.add(name)
    return mode, [function for name, function in by_name.items() if name in allowed]


def _named_by(item: object) -> str | None:
    """The name in {"type": "function", "function": {"name": ...}}, or in the same in flat form."""
    if not isinstance(item, Mapping) or item.get("type") != "function":
        return None
    holder = item.get("function", item)
    name = holder.get("name") if isinstance(holder, Mapping) else None
    return name if isinstance(name, str) else None


def _check_size(tools: list[dict[str, Any]], limits: ToolLimits) -> int:
    """Bytes of all definitions. Raises ApiError."""
    if not 1 <= len(tools) <= limits.max_tools:
        raise invalid_value(f"tools: {len(tools)} tools; give 1 to {limits.max_tools}, or leave it out", "tools")
    num_bytes = len(msgspec.json.encode(tools))
    if num_bytes > limits.max_bytes:
        raise invalid_value(f"tools: {num_bytes} bytes, at most {limits.max_bytes} are taken", "tools")
    return num_bytes


def _check_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The functions. Raises ApiError."""
    functions: dict[str, dict[str, Any]] = {}
    for index, tool in enumerate(tools):
        function = _check_tool(tool, f"tools[{index}]")
        if function["name"] in functions:
            raise invalid_value(f"tools[{index}]: a tool named {function['name']} is there already", "tools")
        functions[function["name"]] = function
    return list(functions.values())


def _check_tool(tool: dict[str, Any], where: str) -> dict[str, Any]:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if tool.get("type") != "function" or not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        remedy = "must be a function whose name has 1 to 64 letters, digits and _.-"
        raise invalid_value(f"{where}: {remedy}", "tools")
    assert isinstance(function, dict)
    description, strict = function.get("description"), function.get("strict")
    if not isinstance(description, str | None):
        raise invalid_value(f"{where}.function.description: must be a text", "tools")
    parameters = function.get("parameters")
    if not isinstance(parameters, dict | None):
        raise invalid_value(f"{where}.function.parameters: must be a JSON schema, an object", "tools")
    fault = find_fault(parameters or {})
    if fault is not None:
        pointer, problem = fault
        raise invalid_value(f'{where}.function.parameters at "{pointer}": {problem}', "tools")
    if not isinstance(strict, bool | None):
        raise invalid_value(f"{where}.function.strict: must be true or false", "tools")
    return function
