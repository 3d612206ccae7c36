"""/v1/responses: items of answers, and the answer itself."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from octavo.server.api.logprobs import TokenLogprob

Status = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed"]


class OutputText(msgspec.Struct, kw_only=True, tag_field="type", tag="output_text"):
    """Text for the reader. `logprobs`: of its tokens, where they were asked for."""

    text: str
    annotations: list[Any] = []
    logprobs: list[TokenLogprob] = []


class ReasoningText(msgspec.Struct, kw_only=True, tag_field="type", tag="reasoning_text"):
    """Text that the model thought."""

    text: str


class MessageItem(msgspec.Struct, kw_only=True, tag_field="type", tag="message"):
    """What the model said between two items of another kind."""

    id: str
    status: Status = "in_progress"
    role: Literal["assistant"] = "assistant"
    content: list[OutputText] = []


class ReasoningItem(msgspec.Struct, kw_only=True, tag_field="type", tag="reasoning"):
    """What the model thought: in clear, never summarized."""

    id: str
    status: Status = "in_progress"
    summary: list[Any] = []
    content: list[ReasoningText] = []
    encrypted_content: None = None


class FunctionCallItem(msgspec.Struct, kw_only=True, tag_field="type", tag="function_call"):
    """One call. `arguments`: as the model wrote them, JSON unless the item is incomplete."""

    id: str
    status: Status = "in_progress"
    call_id: str
    name: str
    arguments: str = ""


OutputItem = MessageItem | ReasoningItem | FunctionCallItem


class InputTokensDetails(msgspec.Struct, kw_only=True):
    """Of the prompt's tokens. Writing to the cache costs nothing here, none are counted for it."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokensDetails(msgspec.Struct, kw_only=True):
    """Of the answer's tokens."""

    reasoning_tokens: int


class ResponseUsage(msgspec.Struct, kw_only=True):
    """Tokens of one request."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseFault(msgspec.Struct, kw_only=True):
    """Why a response failed after its stream had begun."""

    code: Literal["server_error"] = "server_error"
    message: str


class IncompleteDetails(msgspec.Struct, kw_only=True):
    """Why an answer was cut."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class TextConfig(msgspec.Struct, kw_only=True):
    """What was asked of the text."""

    format: dict[str, Any]
    verbosity: str | None = None


class ReasoningConfig(msgspec.Struct, kw_only=True):
    """What was asked of reasoning."""

    effort: str | None = None
    summary: None = None


class Response(msgspec.Struct, kw_only=True):
    """An answer. Fields that have the name of a parameter say what held."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    """Only of one that is complete."""
    status: ResponseStatus = "in_progress"
    error: ResponseFault | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    output: list[OutputItem] = []
    usage: ResponseUsage | None = None
    instructions: str | None
    metadata: dict[str, str]
    max_output_tokens: int | None
    max_tool_calls: int | None
    tools: list[dict[str, Any]]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool
    text: TextConfig
    reasoning: ReasoningConfig
    temperature: float
    top_p: float
    top_logprobs: int
    truncation: str
    service_tier: str | None
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    store: Literal[False] = False
    background: Literal[False] = False
    previous_response_id: None = None
