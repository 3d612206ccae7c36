"""/v1/chat/completions: the request and its answers."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from octavo.server.api.logprobs import ChatLogprobs, PromptLogprobs
from octavo.server.api.sampling_fields import SamplingFields
from octavo.server.api.usage import Usage


class ChatFields(SamplingFields, kw_only=True):
    """How messages become a prompt: shared with /tokenize, which takes a chat request as it is."""

    messages: list[dict[str, Any]]
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    documents: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    mm_processor_kwargs: Any = None
    media_io_kwargs: Any = None
    functions: Any = None
    function_call: Any = None


class ChatCompletionRequest(ChatFields, kw_only=True):
    """A conversation to go on with."""

    logprobs: bool | None = None
    top_logprobs: int | None = None
    max_completion_tokens: int | None = None
    return_prompt_text: bool | None = None
    include_reasoning: bool | None = None


class FunctionCall(msgspec.Struct, kw_only=True):
    """What is called. `arguments`: as the model wrote them, JSON unless the answer was cut."""

    name: str
    arguments: str


class ToolCall(msgspec.Struct, kw_only=True):
    """One call of a tool."""

    id: str
    type: str = "function"
    function: FunctionCall


class ChatMessageOut(msgspec.Struct, kw_only=True):
    """What the model says. `reasoning_content` is the older name of `reasoning`."""

    role: str
    content: str | None
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    tool_calls: list[ToolCall] | UnsetType = UNSET
    """Unset: none."""
    reasoning: str | UnsetType | None = None
    reasoning_content: str | UnsetType | None = UNSET


class ChatChoice(msgspec.Struct, kw_only=True):
    """One answer of n."""

    index: int
    message: ChatMessageOut
    logprobs: ChatLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    token_ids: list[int] | None = None


class ChatCompletionResponse(msgspec.Struct, kw_only=True):
    """The answer that is not streamed."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    service_tier: None = None
    system_fingerprint: str | None = None
    usage: Usage
    prompt_logprobs: PromptLogprobs | None = None
    prompt_token_ids: list[int] | None = None
    prompt_text: str | None = None
    kv_transfer_params: None = None
    metrics: None = None


class FunctionDelta(msgspec.Struct, kw_only=True):
    """What is new of a call: its name comes once, first."""

    name: str | UnsetType = UNSET
    arguments: str = ""


class ToolCallDelta(msgspec.Struct, kw_only=True):
    """What is new of the call `index`; `id` and `type` come with the name."""

    index: int
    id: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    function: FunctionDelta


class Delta(msgspec.Struct, kw_only=True):
    """What is new of a message."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChatChunkChoice(msgspec.Struct, kw_only=True):
    """What is new of one answer."""

    index: int
    delta: Delta
    logprobs: ChatLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType | None = UNSET
    token_ids: list[int] | UnsetType = UNSET
