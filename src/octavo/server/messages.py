"""Messages of a conversation, checked and brought into the form that chat templates read.

Owns: roles, kinds of parts of a content, tool calls of earlier turns.
Does not own: reading parts (text_parts.py), definitions of tools (tools.py), templates (loading), tokens.
Reasoning has both of its names, since templates read either.
Arguments of earlier tool calls become objects where they are JSON of no more than 64 levels, and stay text where not.
Names errors after messages[i].
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from octavo.server.errors import invalid_value, shown
from octavo.server.text_parts import OPENAI_KINDS, TextParts

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_MAX_DEPTH = 64
"""Levels of arguments; a request itself has no more by default."""
_PARTS = TextParts(kinds=OPENAI_KINDS, param="messages", may_be_bare=True)


def read_messages(messages: list[dict[str, Any]], max_messages: int) -> list[dict[str, Any]]:
    """Copies fit for a template. Raises ApiError with param "messages"."""
    if not messages:
        raise invalid_value("messages: is empty; give at least one message", "messages")
    if len(messages) > max_messages:
        where = f"messages[{max_messages}]"
        raise invalid_value(f"{where}: {len(messages)} messages, at most {max_messages} are taken", "messages")
    return [_read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def without_developers(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a template that does not know developers: as the system, and with it where they follow it.

    Few templates take two messages of the system in a row, and some leave out roles that they do not know.
    """
    made: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] != "developer":
            made.append(message)
        elif made and made[-1]["role"] == "system":
            made[-1] = {**made[-1], "content": f"{made[-1]['content']}\n\n{message['content']}"}
        else:
            made.append({**message, "role": "system"})
    return made


def _read_message(message: dict[str, Any], where: str) -> dict[str, Any]:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        _refuse(f"{where}.role={shown(role)}: must be one of {', '.join(sorted(ROLES))}")
    read = {name: value for name, value in message.items() if value is not None}
    reasoning = read.get("reasoning", read.get("reasoning_content"))
    if reasoning is not None:
        if not isinstance(reasoning, str):
            _refuse(f"{where}.reasoning={shown(reasoning)}: must be a text")
        read["reasoning"] = read["reasoning_content"] = reasoning
    calls = read.get("tool_calls")
    if calls is not None:
        read["tool_calls"] = _read_tool_calls(calls, where)
    content = message.get("content")
    if content is None:
        if role != "assistant" or not (calls or reasoning or read.get("refusal")):
            _refuse(f"{where}.content: is missing; only an assistant's message with tool calls may have none")
        read["content"] = ""
    else:
        read["content"] = _PARTS.read(content, f"{where}.content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        _refuse(f"{where}.tool_call_id: a tool's message must name the call that it answers")
    return read


def _read_tool_calls(calls: object, where: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        _refuse(f"{where}.tool_calls={shown(calls)}: must be a list")
    return [_read_tool_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)]


def _read_tool_call(call: object, where: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        _refuse(f"{where}: must have a function with a name")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments) if arguments else {}
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) and _is_shallow(parsed) else arguments
    return {**call, "function": {**function, "arguments": {} if arguments is None else arguments}}


def _is_shallow(value: object) -> bool:
    """No deeper than templates, which walk it recursively, can read."""
    level: list[object] = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def _refuse(message: str) -> NoReturn:
    raise invalid_value(message, "messages")
