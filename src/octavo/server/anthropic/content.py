"""Messages made of blocks, to the messages of a chat request.

Owns: roles, kinds of blocks, which call a result answers, when the last message is an answer to be gone on with.
Does not own: templates, the bound on the number of messages (messages.py).
Messages of one role in a row are one turn. Its texts are joined by newlines; what the assistant thought goes to
`reasoning`; a result becomes a message of its own, in its place. Errors name the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from octavo.server.errors import invalid_value, shown
from octavo.server.text_parts import TextParts, read_text

ERROR_PREFIX = "Error: "
"""In front of a result with is_error: templates have no other place for it."""

_PARAM = "messages"
_PARTS = TextParts(kinds={"text": "text"}, param=_PARAM)

_Located = tuple[str, dict[str, Any]]
"""(where in the request, block)."""


@dataclass(slots=True)
class ChatMessages:
    """What a template reads."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    is_continued: bool = False
    """The model goes on with the last message."""


def read_content(messages: Sequence[dict[str, Any]], system: str | list[dict[str, Any]] | None) -> ChatMessages:
    """Raises ApiError naming messages[i].content[j] or system[i]."""
    if not messages:
        _refuse("messages: is empty; give at least one message")
    chat = ChatMessages()
    if system is not None:
        _add_system(chat, list(_blocks(system, "system")))
    tool_names: dict[str, str] = {}
    turns = list(_turns(messages))
    for index, (role, blocks) in enumerate(turns):
        if role == "assistant":
            _add_assistant(chat, blocks, tool_names, is_last=index == len(turns) - 1)
        elif role == "user":
            _add_user(chat, blocks, tool_names)
        else:
            _add_system(chat, blocks)
    return chat


def _add_system(chat: ChatMessages, blocks: Sequence[_Located]) -> None:
    texts = [_PARTS.read_part(block, where) for where, block in blocks]
    if chat.messages and chat.messages[-1]["role"] == "system":
        texts.insert(0, chat.messages.pop()["content"])
    if texts:
        chat.messages.append({"role": "system", "content": "\n".join(texts)})


def _turns(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[_Located]]]:
    """(role, blocks); those of one role in a row are joined."""
    current: str | None = None
    blocks: list[_Located] = []
    for index, message in enumerate(messages):
        where, role = f"messages[{index}]", message.get("role")
        if role not in ("user", "assistant", "system"):
            _refuse(f"{where}.role={shown(role)}: must be user or assistant")
        new = list(_blocks(message.get("content"), f"{where}.content"))
        is_last = index == len(messages) - 1
        if not new and not (is_last and role == "assistant"):
            _refuse(f"{where}.content: is empty; only the last message may be, if it is the assistant's")
        if role != current:
            if current is not None:
                yield current, blocks
            current, blocks = role, []
        blocks += new
    assert current is not None
    yield current, blocks


def _blocks(content: object, where: str) -> Iterator[_Located]:
    if isinstance(content, str):
        if content:
            yield where, {"type": "text", "text": content}
        return
    if not isinstance(content, list):
        _refuse(f"{where}={shown(content)}: must be a text or a list of blocks")
    for index, block in enumerate(content):
        place = f"{where}[{index}]"
        if not isinstance(block, dict):
            _refuse(f"{place}={shown(block)}: must be a block, an object with a type")
        yield place, block


def _add_user(chat: ChatMessages, blocks: Sequence[_Located], tool_names: dict[str, str]) -> None:
    texts: list[str] = []

    def end_text() -> None:
        if texts:
            chat.messages.append({"role": "user", "content": "\n".join(texts)})
            texts.clear()

    for where, block in blocks:
        if block.get("type") != "tool_result":
            texts.append(_PARTS.read_part(block, where))
            continue
        end_text()
        call_id = block.get("tool_use_id")
        if not isinstance(call_id, str) or call_id not in tool_names:
            _refuse(f"{where}.tool_use_id={shown(call_id)}: no message before this one has a tool_use of that id")
        content = _result(block, where)
        name = tool_names[call_id]
        chat.messages.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": content})
    end_text()


def _result(block: dict[str, Any], where: str) -> str:
    content, is_error = block.get("content"), block.get("is_error")
    if not isinstance(is_error, bool | None):
        _refuse(f"{where}.is_error={shown(is_error)}: must be true or false")
    parts = [] if content is None else _blocks(content, f"{where}.content")
    text = "\n".join(_PARTS.read_part(part, place) for place, part in parts)
    return ERROR_PREFIX + text if is_error else text


def _add_assistant(
    chat: ChatMessages, blocks: Sequence[_Located], tool_names: dict[str, str], *, is_last: bool
) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for where, block in blocks:
        kind = block.get("type")
        if kind == "thinking":
            thoughts.append(read_text(block, "thinking", where, _PARAM))
        elif kind == "redacted_thinking":
            continue  # encrypted by somebody else: there is nothing to read
        elif kind == "tool_use":
            calls.append(_call(block, where))
            tool_names[calls[-1]["id"]] = calls[-1]["function"]["name"]
        else:
            texts.append(_PARTS.read_part(block, where))
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts)}
    if any(thoughts):
        message["reasoning"] = "\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    if is_last:
        if calls:
            _refuse("messages: the last one holds a tool_use; send its tool_result, or leave it out")
        if not message["content"]:
            if "reasoning" in message:
                _refuse("messages: an answer that is gone on with must hold text behind what was thought")
            return
        chat.is_continued = True
    chat.messages.append(message)


def _call(block: dict[str, Any], where: str) -> dict[str, Any]:
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        _refuse(f"{where}.input={shown(arguments)}: must be an object")
    function = {"name": read_text(block, "name", where, _PARAM), "arguments": arguments}
    return {"id": read_text(block, "id", where, _PARAM), "type": "function", "function": function}


def _refuse(message: str) -> NoReturn:
    raise invalid_value(message, _PARAM)
