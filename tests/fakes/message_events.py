"""Events of a streamed message, read as a client reads them: checked for their order, added up to the message."""

from __future__ import annotations

import json
from typing import Any

import jiter

Event = dict[str, Any]
_GROWS = {
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
    "input_json_delta": ("tool_use", "partial_json", "input"),
}
"""Delta -> the block it belongs to, its field, the block's field."""


def read_events(body: bytes) -> list[Event]:
    """All but pings; each is named after its type."""
    events = []
    for part in body.decode().split("\n\n")[:-1]:
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return [event for event in events if event["type"] != "ping"]


def kinds(events: list[Event]) -> list[str]:
    """Types, with those of blocks and deltas; runs of one delta once."""
    found: list[str] = []
    for event in events:
        inner = event.get("content_block") or (event.get("delta") if "index" in event else None) or {}
        kind = " ".join(filter(None, (event["type"].removeprefix("content_block_"), inner.get("type"))))
        if not found or found[-1] != kind:
            found.append(kind)
    return found


def add_up(events: list[Event]) -> dict[str, Any]:
    """The message. Inputs are read with the official client's own reader."""
    assert events[0]["type"] == "message_start"
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    message = events[0]["message"]
    assert (message["content"], message["stop_reason"], message["stop_sequence"]) == ([], None, None)
    message["content"] = _content(events[1:-2])
    end = events[-2]
    return {**message, **end["delta"], "usage": {**message["usage"], **end["usage"]}}


def _content(events: list[Event]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    is_open = False
    for event in events:
        if event["type"] == "content_block_start":
            assert not is_open
            assert event["index"] == len(blocks)
            blocks.append(dict(event["content_block"]))
            is_open = True
            continue
        assert is_open
        assert event["index"] == len(blocks) - 1
        if event["type"] == "content_block_stop":
            is_open = False
            continue
        _grow(blocks[-1], event, inputs)
    assert not is_open
    for index, text in inputs.items():
        assert blocks[index]["input"] == {}
        blocks[index]["input"] = jiter.from_json(text.encode(), partial_mode=True)
    return blocks


def _grow(block: dict[str, Any], event: Event, inputs: dict[int, str]) -> None:
    assert event["type"] == "content_block_delta"
    delta = event["delta"]
    if delta["type"] == "signature_delta":
        assert (block["type"], block["signature"]) == ("thinking", "")
        block["signature"] = delta["signature"]
        return
    kind, source, target = _GROWS[delta["type"]]
    assert block["type"] == kind
    assert delta[source]
    if kind == "tool_use":
        inputs[event["index"]] = inputs.get(event["index"], "") + delta[source]
    else:
        block[target] += delta[source]


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """What two answers to one request share."""
    content = [{name: value for name, value in block.items() if name != "id"} for block in message["content"]]
    for block in message["content"]:
        assert block.get("id", "toolu_").startswith("toolu_")
    return {**message, "id": None, "content": content}
