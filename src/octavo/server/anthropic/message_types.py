"""/v1/messages: the request, the blocks of an answer, the answer. Anthropic's names and forms.

Types are strict, as in chat requests; fields that are not known are ignored. None is "not given".
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]


# ---- request --------------------------------------------------------------------------------------------------------


class Thinking(msgspec.Struct, kw_only=True):
    """Whether the model is to reason, and for how many tokens."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted"] | None = None


class ToolDefinition(msgspec.Struct, kw_only=True):
    """A tool that the client runs. What has another type than "custom" would be run by the server."""

    name: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    type: str | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: list[str] | None = None


class ToolChoice(msgspec.Struct, kw_only=True):
    """Which tools may or must be called. `name`: of the one, for type tool."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class OutputFormat(msgspec.Struct, kw_only=True):
    """The form that the text must have."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct, kw_only=True):
    """How much effort the answer is worth, and its form."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None
    task_budget: Any = None


class RefusedFields(msgspec.Struct, kw_only=True):
    """What this server cannot do: a request that asks for it is refused, never answered without it."""

    container: Any = None
    mcp_servers: Any = None
    context_management: Any = None
    inference_geo: Any = None


class MessageFields(RefusedFields, kw_only=True):
    """How a conversation becomes a prompt: all that counting its tokens needs."""

    model: str | None = None
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None
    tools: list[ToolDefinition] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    """The older place of output_config.format."""
    chat_template_kwargs: dict[str, Any] | None = None


class CountTokensRequest(MessageFields, kw_only=True):
    """A conversation whose prompt is to be counted; a request for an answer is one too."""


class MessagesRequest(MessageFields, kw_only=True):
    """A conversation to be answered. What is below `stream` is vLLM's, and means what it means for chat."""

    max_tokens: int
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stream: bool | None = None
    min_p: float | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    stop_token_ids: list[int] | None = None
    logit_bias: dict[str, float] | None = None
    structured_outputs: dict[str, Any] | None = None
    stream_interval: int | None = None
    priority: int | None = None
    cache_salt: str | None = None
    kv_transfer_params: Any = None
    vllm_xargs: Any = None


# ---- answer ---------------------------------------------------------------------------------------------------------


class TextBlock(msgspec.Struct, kw_only=True, tag_field="type", tag="text"):
    """Text for the reader."""

    text: str = ""


class ThinkingBlock(msgspec.Struct, kw_only=True, tag_field="type", tag="thinking"):
    """What the model thought. `signature`: a digest of it, for clients that send back only what is signed."""

    thinking: str = ""
    signature: str = ""


class ToolUseBlock(msgspec.Struct, kw_only=True, tag_field="type", tag="tool_use"):
    """A call. `input`: an object, as the model wrote it (input_json.py says what is made of one that was cut)."""

    id: str
    name: str
    input: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


Block = TextBlock | ThinkingBlock | ToolUseBlock


class OutputTokensDetails(msgspec.Struct, kw_only=True):
    """Of the answer's tokens."""

    thinking_tokens: int


class MessageUsage(msgspec.Struct, kw_only=True):
    """Tokens of one request. The prompt's are those of `input_tokens` and of the cache together."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens_details: OutputTokensDetails | UnsetType = UNSET
    """Unset: this answer is not looked through for reasoning."""


class Message(msgspec.Struct, kw_only=True, tag_field="type", tag="message"):
    """The answer, or in message_start its frame."""

    id: str
    role: Literal["assistant"] = "assistant"
    content: list[Block]
    model: str
    stop_reason: StopReason | None = None
    """None: it has not ended."""
    stop_sequence: str | None = None
    usage: MessageUsage


class TokenCount(msgspec.Struct, kw_only=True):
    """Of the prompt."""

    input_tokens: int


class MessageErrorInfo(msgspec.Struct, kw_only=True):
    """What went wrong."""

    type: str
    message: str


class MessageErrorResponse(msgspec.Struct, kw_only=True, tag_field="type", tag="error"):
    """The body of every answer that is not a success, and the last event of a stream that failed."""

    error: MessageErrorInfo
    request_id: str
