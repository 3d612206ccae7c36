"""Tools, from the flat form of this API to that of chat.

Owns: kinds of tools that are refused.   Does not own: definitions, the choice among them (server/tools.py, which takes
the flat form of tool_choice too).
"""

from __future__ import annotations

from typing import Any

from octavo.server.errors import ApiError

_OF_FUNCTION = ("name", "description", "parameters", "strict")


def nest_tools(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """As chat has them; an empty list is none. Raises ApiError."""
    return [_nest(tool, f"tools[{index}]") for index, tool in enumerate(tools or ())] or None


def _nest(tool: dict[str, Any], where: str) -> dict[str, Any]:
    kind = tool.get("type")
    if kind != "function":
        message = f"{where}.type={str(kind)[:40]!r}: only tools of type function are here"
        raise ApiError(400, "unsupported_feature", message, param="tools")
    return {"type": "function", "function": {name: tool[name] for name in _OF_FUNCTION if tool.get(name) is not None}}
