"""What the model said as a message: whole, or what is new of it. Both are made of the same events.

Owns: joining events, ids of calls.   Does not own: choices and chunks (chat.py, chat_stream.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET

from octavo.outputs import CompletionOutput
from octavo.parsers.events import CallArguments, CallBegun, Content, Event, Reasoning, fold
from octavo.server.api.chat_types import ChatMessageOut, Delta, FunctionCall, FunctionDelta, ToolCall, ToolCallDelta
from octavo.server.api.logprobs import ChatLogprobs, chat_logprobs
from octavo.server.tools import new_call_id
from octavo.server.turn import Turn
from octavo.server.turn_reasoning import ReasoningNames


def message_of(events: Iterable[Event], role: str, echoed: str, names: ReasoningNames) -> ChatMessageOut:
    """All events of one choice. Content is null where there is none beside calls or reasoning."""
    said = fold(events)
    content = echoed + said.content
    reasoning = said.reasoning or None
    message = ChatMessageOut(role=role, content=content if content or not (said.calls or reasoning) else None)
    message.reasoning = reasoning if names.new else UNSET
    message.reasoning_content = reasoning if names.old else UNSET
    if said.calls:
        message.tool_calls = [
            ToolCall(id=new_call_id(), function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in said.calls
        ]
    return message


def delta_of(events: Sequence[Event], names: ReasoningNames) -> Delta:
    """The events of one chunk; adjacent pieces are joined."""
    delta = Delta()
    content = "".join(event.text for event in events if isinstance(event, Content))
    reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
    if content:
        delta.content = content
    if reasoning:
        if names.new:
            delta.reasoning = reasoning
        if names.old:
            delta.reasoning_content = reasoning
    calls: dict[int, ToolCallDelta] = {}
    for event in events:
        if isinstance(event, CallBegun):
            calls[event.index] = ToolCallDelta(
                index=event.index, id=new_call_id(), type="function", function=FunctionDelta(name=event.name)
            )
        elif isinstance(event, CallArguments) and event.text:
            call = calls.setdefault(event.index, ToolCallDelta(index=event.index, function=FunctionDelta()))
            call.function.arguments += event.text
    if calls:
        delta.tool_calls = list(calls.values())
    return delta


def make_logprobs(turn: Turn, output: CompletionOutput) -> ChatLogprobs | None:
    """Of the tokens in this output; None: not asked for."""
    if not turn.request.logprobs:
        return None
    return chat_logprobs(output.token_ids, output.logprobs or [], turn.names, num_top=turn.num_top)
