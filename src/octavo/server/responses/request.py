"""/v1/responses: the request.

Fields of vLLM (sampling, constraints, priorities, ...) are those that all APIs share. None is "not given".
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from octavo.server.api.sampling_fields import SamplingFields


class TextOptions(msgspec.Struct, kw_only=True):
    """What the text must be. `verbosity` is for the chat template."""

    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningOptions(msgspec.Struct, kw_only=True):
    """How much the model thinks. Summaries are not made: reasoning is answered as it is."""

    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class ObfuscationOptions(msgspec.Struct, kw_only=True):
    """Of a stream."""

    include_obfuscation: bool | None = None
    include_usage: bool | None = None
    """Usage is always in the last event."""


class StoredFields(SamplingFields, kw_only=True):
    """What would need a store, or something beside a model: refused."""

    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None
    prompt: Any = None
    context_management: Any = None
    moderation: Any = None


class ForeignFields(StoredFields, kw_only=True):
    """Fields of the chat API that have another name here, or no place: refused."""

    messages: Any = None
    max_completion_tokens: Any = None
    logprobs: Any = None
    reasoning_effort: Any = None
    functions: Any = None
    function_call: Any = None


class ResponsesRequest(ForeignFields, kw_only=True):
    """`input`: a text, or the items of a conversation."""

    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    """Of calls that a server makes itself; there are none."""
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include_reasoning: bool | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    stream_options: ObfuscationOptions | None = None  # type: ignore[assignment]
    service_tier: str | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
