"""Tools and the choice among them, from the flat form of this API to that of chat.

Owns: kinds of tools that are refused, allowed_tools.   Does not own: checks of definitions (server/tools.py).
"""

from __future__ import annotations

from typing import Any

from octavo.server.errors import ApiError, invalid_value

_OF_FUNCTION = ("name", "description", "parameters", "strict")

ToolChoiceField = str | dict[str, Any] | None


def read_tool_fields(
    tools: list[dict[str, Any]] | None, choice: ToolChoiceField
) -> tuple[list[dict[str, Any]] | None, ToolChoiceField]:
    """(tools, tool_choice) of a chat request. Raises ApiError."""
    nested = [_nested(tool, f"tools[{index}]") for index, tool in enumerate(tools or ())]
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        nested, choice = _allowed(nested, choice)
    elif isinstance(choice, dict) and choice.get("type") != "function":
        kind = str(choice.get("type"))[:40]
        raise _unsupported(f"tool_choice.type={kind!r}: only functions and allowed_tools can be chosen", "tool_choice")
    return nested or None, choice


def _nested(tool: dict[str, Any], where: str) -> dict[str, Any]:
    kind = tool.get("type")
    if kind != "function":
        raise _unsupported(f"{where}.type={str(kind)[:40]!r}: only tools of type function are here", "tools")
    return {"type": "function", "function": {name: tool[name] for name in _OF_FUNCTION if tool.get(name) is not None}}


def _allowed(tools: list[dict[str, Any]], choice: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Only those that are allowed: the model does not see the others, so that it cannot choose them."""
    mode, listed = choice.get("mode"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise invalid_value(f'tool_choice.mode={str(mode)[:40]!r}: must be "auto" or "required"', "tool_choice")
    if not isinstance(listed, list) or not listed:
        raise invalid_value("tool_choice.tools: must be a list of at least one tool", "tool_choice")
    names = [tool["function"].get("name") for tool in tools]
    known = {name for name in names if isinstance(name, str)}
    wanted = set()
    for index, item in enumerate(listed):
        name = item.get("name") if isinstance(item, dict) and item.get("type") == "function" else None
        if not isinstance(name, str) or name not in known:
            raise invalid_value(f"tool_choice.tools[{index}]: is none of the functions in tools", "tool_choice")
        wanted.add(name)
    return [tool for tool, name in zip(tools, names, strict=True) if isinstance(name, str) and name in wanted], mode


def _unsupported(message: str, param: str) -> ApiError:
    return ApiError(400, "unsupported_feature", message, param=param)
