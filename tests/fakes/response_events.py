"""The events of a streamed response, checked against the order that clients rely on."""

from __future__ import annotations

import json
from typing import Any

BEGIN = ["response.created", "response.in_progress"]
ENDS = {"response.completed", "response.incomplete", "response.failed"}
PART_KINDS = {"message": "output_text", "reasoning": "reasoning_text"}
RANDOM = {"id", "call_id", "created_at", "completed_at"}


def read_events(body: bytes) -> list[dict[str, Any]]:
    """Of a stream; the name of each is its type, their numbers have no gap. Comments are left out."""
    events = []
    for block in body.decode().split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == len(events)
        events.append(event)
    assert body.endswith(b"\n\n")
    return events


def final_response(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The response in the last event, which the events before it must amount to."""
    assert [event["type"] for event in events[:2]] == BEGIN
    assert events[-1]["type"] in ENDS
    assert events[-1]["type"] == f"response.{events[-1]['response']['status']}"
    begun, final = events[0]["response"], events[-1]["response"]
    assert events[1]["response"] == begun
    assert (begun["status"], begun["output"], begun["usage"]) == ("in_progress", [], None)
    told = {"status", "output", "usage", "error", "incomplete_details", "completed_at"}
    assert {key: value for key, value in begun.items() if key not in told} == {
        key: value for key, value in final.items() if key not in told
    }
    middle = [event for event in events[2:-1] if event["type"] != "error"]
    items = []
    while middle and (last := _find_end(middle)) is not None:
        items.append(_item_of(middle[: last + 1], len(items)))
        middle = middle[last + 1 :]
    assert items == final["output"]
    assert not middle or final["status"] == "failed"
    return final


def _find_end(events: list[dict[str, Any]]) -> int | None:
    return next((i for i, event in enumerate(events) if event["type"] == "response.output_item.done"), None)


def _item_of(events: list[dict[str, Any]], index: int) -> dict[str, Any]:
    first, *inner, last = events
    begun, item = first["item"], last["item"]
    assert (first["type"], begun["status"]) == ("response.output_item.added", "in_progress")
    assert (begun["id"], begun["type"]) == (item["id"], item["type"])
    assert all(event["output_index"] == index for event in events)
    assert all(event["item_id"] == item["id"] for event in inner)
    *deltas, done = _inner_of_part(inner, begun, item) if item["type"] in PART_KINDS else inner
    kind = PART_KINDS.get(item["type"], "function_call_arguments")
    assert {event["type"] for event in deltas} <= {f"response.{kind}.delta"}
    assert done["type"] == f"response.{kind}.done"
    said = "".join(event["delta"] for event in deltas)
    if item["type"] == "function_call":
        assert (said, item["name"]) == (item["arguments"], begun["name"])
        assert done["arguments"] == said
        return item
    assert said == done["text"] == item["content"][0]["text"]
    if kind == "output_text":
        logprobs = [logprob for event in deltas for logprob in event["logprobs"]]
        assert logprobs == done["logprobs"] == item["content"][0]["logprobs"]
    return item


def _inner_of_part(inner: list[dict[str, Any]], begun: dict[str, Any], item: dict[str, Any]) -> list[dict[str, Any]]:
    added, *rest, part_done = inner
    assert begun["content"] == []
    assert (added["type"], part_done["type"]) == ("response.content_part.added", "response.content_part.done")
    assert added["part"]["text"] == ""
    assert [part_done["part"]] == item["content"]
    assert all(event["content_index"] == 0 for event in inner)
    return rest


def without_random(value: Any) -> Any:
    """Without what differs between two runs of one request."""
    if isinstance(value, dict):
        return {key: without_random(item) for key, item in value.items() if key not in RANDOM}
    return [without_random(item) for item in value] if isinstance(value, list) else value
