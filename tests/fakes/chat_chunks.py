"""Chunks of a chat stream added up to the answer that is not streamed."""

from __future__ import annotations

from typing import Any


def add_up(events: list[Any]) -> list[dict[str, Any]]:
    """The choices, as {content, reasoning, calls, finish_reason, num_tokens}; checks the order of chunks."""
    choices: dict[int, dict[str, Any]] = {}
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        assert "error" not in event, event
        for choice in event["choices"]:
            delta, said = choice["delta"], choices.setdefault(choice["index"], _nothing())
            assert said["finish_reason"] is None, "a chunk behind the end"
            said["content"] += delta.get("content") or ""
            said["reasoning"] += delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or ():
                _add_call(said["calls"], call)
            said["finish_reason"] = choice["finish_reason"]
            said["num_tokens"] += len((choice.get("logprobs") or {}).get("content") or ())
    return [choices[index] for index in sorted(choices)]


def _nothing() -> dict[str, Any]:
    return {"content": "", "reasoning": "", "calls": [], "finish_reason": None, "num_tokens": 0}


def _add_call(calls: list[dict[str, str]], delta: dict[str, Any]) -> None:
    function = delta["function"]
    if delta["index"] == len(calls):
        assert delta["type"] == "function"
        assert delta["id"]
        calls.append({"name": function["name"], "arguments": ""})
    else:
        assert set(delta) == {"index", "function"}
        assert set(function) == {"arguments"}
    calls[delta["index"]]["arguments"] += function["arguments"]


def as_said(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice of an answer that was not streamed, in the same form."""
    message = choice["message"]
    return {
        "content": message["content"] or "",
        "reasoning": message["reasoning"] or "",
        "calls": [call["function"] for call in message.get("tool_calls", ())],
        "finish_reason": choice["finish_reason"],
        "num_tokens": len((choice["logprobs"] or {}).get("content") or ()),
    }
