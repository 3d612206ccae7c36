"""From the items of a request to messages of a conversation.

Owns: which items there are, and how those of one turn of the model (reasoning, text, calls) become one message.
Developers' messages become the system's, which every template knows, and those that follow each other become one.
Does not own: roles of templates, parts of a content (server/text_parts.py).   Names errors after input[i].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from octavo.server.errors import invalid_value, shown
from octavo.server.text_parts import OPENAI_KINDS, TextParts, read_text

_ROLES = frozenset({"system", "developer", "user", "assistant"})
_PARAM = "input"
_PARTS = TextParts(kinds=OPENAI_KINDS, param=_PARAM)
_REASONING, _CONTENT, _CALLS = "reasoning", "content", "tool_calls"
_ORDER = {_REASONING: 0, _CONTENT: 1, _CALLS: 2}

Item = dict[str, Any]
Message = dict[str, Any]


def read_input(given: str | list[Item], instructions: str | None, max_items: int) -> list[Message]:
    """Messages of a chat request. Raises ApiError with param "input"."""
    reader = _ItemReader()
    if instructions is not None:
        reader.instruct(instructions)
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not items:
        _refuse("input: is empty; give a text or at least one item")
    if len(items) > max_items:
        _refuse(f"input[{max_items}]: {len(items)} items, at most {max_items} are taken")
    for index, item in enumerate(items):
        reader.take(item, f"input[{index}]")
    return reader.end()


class _ItemReader:
    """Reads items in their order."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._instructions: list[str] = []
        """Those that nothing else has followed yet."""
        self._turn: Message | None = None
        """What the model said last, as long as nobody else spoke."""
        self._stage = 0
        self._called: dict[str, str] = {}
        self._kinds: dict[str, Callable[[Item, str], None]] = {
            "message": self._message,
            "function_call": self._call,
            "function_call_output": self._call_output,
            "reasoning": self._reasoning,
        }

    def take(self, item: Item, where: str) -> None:
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        read = self._kinds.get(kind) if isinstance(kind, str) else None
        if kind == "item_reference":
            _refuse(f"{where}: refers to an item that was stored; nothing is stored here, send the item itself")
        if read is None:
            known = ", ".join(self._kinds)
            _refuse(f"{where}.type={shown(kind)}: is not supported; items may be {known}")
        read(item, where)

    def instruct(self, content: str) -> None:
        """Instructions of the system or the developer. Few templates take two such messages."""
        self._turn = None
        self._instructions.append(content)

    def end(self) -> list[Message]:
        """All messages."""
        self._end_instructions()
        return self._messages

    def _message(self, item: Item, where: str) -> None:
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            _refuse(f"{where}.role={shown(role)}: must be one of {', '.join(sorted(_ROLES))}")
        content = _PARTS.read(item.get("content"), f"{where}.content")
        if role == "assistant":
            self._said(_CONTENT)["content"] = content
        elif role == "user":
            self._other({"role": "user", "content": content})
        else:
            self.instruct(content)

    def _reasoning(self, item: Item, where: str) -> None:
        for name, kind in (("content", "reasoning_text"), ("summary", "summary_text")):
            text = _read_thoughts(item.get(name), kind, f"{where}.{name}")
            if text:
                self._said(_REASONING)["reasoning"] = text
                return

    def _call(self, item: Item, where: str) -> None:
        call_id, name, arguments = (read_text(item, field, where, _PARAM) for field in ("call_id", "name", "arguments"))
        self._called[call_id] = name
        function = {"name": name, "arguments": arguments}
        calls = self._said(_CALLS).setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": function})

    def _call_output(self, item: Item, where: str) -> None:
        call_id = read_text(item, "call_id", where, _PARAM)
        message = {
            "role": "tool",
            "tool_call_id": call_id,
            "content": _PARTS.read(item.get("output"), f"{where}.output"),
        }
        if call_id in self._called:
            message["name"] = self._called[call_id]
        self._other(message)

    def _said(self, part: str) -> Message:
        """The message that this part of the model's turn belongs to."""
        stage = _ORDER[part]
        if self._turn is None or stage < self._stage or (stage == self._stage and part != _CALLS):
            self._turn = {"role": "assistant", "content": None}
            self._append(self._turn)
        self._stage = stage
        return self._turn

    def _other(self, message: Message) -> None:
        self._turn = None
        self._append(message)

    def _append(self, message: Message) -> None:
        self._end_instructions()
        self._messages.append(message)

    def _end_instructions(self) -> None:
        if self._instructions:
            self._messages.append({"role": "system", "content": "\n\n".join(self._instructions)})
            self._instructions = []


def _read_thoughts(parts: object, kind: str, where: str) -> str:
    if parts is None:
        return ""
    if not isinstance(parts, list) or not all(isinstance(part, dict) and part.get("type") == kind for part in parts):
        _refuse(f"{where}={shown(parts)}: must be a list of parts of type {kind}")
    return "\n".join(read_text(part, "text", f"{where}[{index}]", _PARAM) for index, part in enumerate(parts))


def _refuse(message: str) -> NoReturn:
    raise invalid_value(message, _PARAM)
