"""The frame of an answer: its id, its usage, why it ended. Both forms of an answer have the same.

Does not own: content (blocks.py).
"""

from __future__ import annotations

from msgspec import UNSET

from octavo.server.anthropic.events import MessageEnd
from octavo.server.anthropic.message_types import Block, Message, MessageUsage, OutputTokensDetails, StopReason
from octavo.server.turn import Turn, TurnUpdate


def make_message(turn: Turn, content: list[Block], end: MessageEnd | None = None) -> Message:
    """With the usage so far."""
    message = Message(id=f"msg_{turn.request_id}", content=content, model=turn.model, usage=usage_of(turn))
    if end is not None:
        message.stop_reason, message.stop_sequence = end.stop_reason, end.stop_sequence
    return message


def usage_of(turn: Turn) -> MessageUsage:
    """So far. What was read from the cache is not among the input_tokens."""
    usage = turn.meter.usage()
    num_cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details is not None else 0
    details = usage.completion_tokens_details
    return MessageUsage(
        input_tokens=usage.prompt_tokens - num_cached,
        output_tokens=usage.completion_tokens,
        cache_read_input_tokens=num_cached,
        output_tokens_details=UNSET
        if details is None
        else OutputTokensDetails(thinking_tokens=details.reasoning_tokens),
    )


def end_of(turn: Turn, update: TurnUpdate, *, has_calls: bool) -> MessageEnd:
    """Of the last update. A stop sequence wins over calls: the text ended where it stood, perhaps within one."""
    if update.finish_reason == "length":
        return MessageEnd(stop_reason=_what_was_full(turn), stop_sequence=None)
    if isinstance(update.stop_reason, str) and update.stop_reason in (turn.request.stop or ()):
        return MessageEnd(stop_reason="stop_sequence", stop_sequence=update.stop_reason)
    return MessageEnd(stop_reason="tool_use" if has_calls else "end_turn", stop_sequence=None)


def _what_was_full(turn: Turn) -> StopReason:
    wanted = turn.request.max_tokens
    is_less = wanted is not None and turn.meter.usage().completion_tokens < wanted
    return "model_context_window_exceeded" if is_less else "max_tokens"
