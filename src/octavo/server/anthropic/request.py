"""From a request to /v1/messages to a chat request.

Owns: what each field of Anthropic's stands for, what is refused.
Does not own: messages (content.py), the checks that both APIs share (turn.py), names in their errors (errors.py).
Invariant: a field that constrains the answer is honoured or refused.
"""

from __future__ import annotations

from typing import Any

from octavo.server.anthropic.content import read_content
from octavo.server.anthropic.message_types import (
    MessageFields,
    MessagesRequest,
    OutputFormat,
    RefusedFields,
    Thinking,
    ToolChoice,
    ToolDefinition,
)
from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.errors import ApiError, invalid_value

MIN_BUDGET_TOKENS = 1024
FORMAT_NAME = "output"
"""A chat request's schema has a name; nothing reads it."""

_SAME = (
    "temperature",
    "top_p",
    "top_k",
    "stream",
    "min_p",
    "seed",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
    "stop_token_ids",
    "logit_bias",
    "structured_outputs",
    "stream_interval",
    "priority",
    "cache_salt",
    "kv_transfer_params",
    "vllm_xargs",
)
"""Fields that chat requests have too."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_THINKING_VARIABLES = ("enable_thinking", "thinking")
"""As templates call it."""


def to_chat(request: MessagesRequest) -> ChatCompletionRequest:
    """A request for an answer. Raises ApiError."""
    if request.max_tokens < 1:
        raise invalid_value(f"max_tokens={request.max_tokens}: must be at least 1", "max_tokens")
    thinking = request.thinking
    if thinking is not None and thinking.budget_tokens is not None and thinking.budget_tokens >= request.max_tokens:
        remedy = f"must be less than max_tokens={request.max_tokens}"
        raise invalid_value(f"thinking.budget_tokens={thinking.budget_tokens}: {remedy}", "thinking")
    chat = to_prompt(request)
    for name in _SAME:
        setattr(chat, name, getattr(request, name))
    chat.max_tokens = request.max_tokens
    chat.stop = request.stop_sequences
    return chat


def to_prompt(request: MessageFields) -> ChatCompletionRequest:
    """The part that makes the prompt, and what the answer must be. Raises ApiError."""
    _check_refused(request)
    content = read_content(request.messages, request.system)
    chat = ChatCompletionRequest(
        model=request.model,
        messages=content.messages,
        chat_template_kwargs=dict(request.chat_template_kwargs or {}),
        continue_final_message=content.is_continued,
        add_generation_prompt=not content.is_continued,
    )
    _set_tools(chat, request.tools or [], request.tool_choice)
    _set_thinking(chat, request.thinking)
    _set_output(chat, request)
    return chat


def _check_refused(request: MessageFields) -> None:
    refused = {name: getattr(request, name) for name in RefusedFields.__struct_fields__}
    if request.output_config is not None:
        refused["output_config.task_budget"] = request.output_config.task_budget
    for name, value in refused.items():
        if value is not None and value not in ({}, []) and not _is_without_effect(name, value):
            message = f"{name}: is not supported by this server; leave it out"
            raise ApiError(400, "unsupported_feature", message, param=name.partition(".")[0])


def _is_without_effect(name: str, value: object) -> bool:
    """Agents send a management of the context that keeps everything."""
    if name != "context_management" or not isinstance(value, dict):
        return False
    edits = value.get("edits")
    return not edits or (
        isinstance(edits, list)
        and all(
            isinstance(edit, dict) and str(edit.get("type")).startswith("clear_thinking_") and edit.get("keep") == "all"
            for edit in edits
        )
    )


def _set_tools(chat: ChatCompletionRequest, tools: list[ToolDefinition], choice: ToolChoice | None) -> None:
    if tools:
        chat.tools = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if choice is None:
        return
    if choice.type in ("any", "tool") and not tools:
        raise invalid_value("tool_choice: there are no tools to choose from", "tool_choice")
    if choice.type != "tool":
        chat.tool_choice = _CHOICES[choice.type]
    elif choice.name is None or choice.name not in {tool.name for tool in tools}:
        raise invalid_value(f"tool_choice.name={(choice.name or '')[:70]!r}: must be one of the tools", "tool_choice")
    else:
        chat.tool_choice = {"type": "function", "function": {"name": choice.name}}
    if choice.disable_parallel_tool_use:
        chat.parallel_tool_calls = False


def _tool(tool: ToolDefinition, where: str) -> dict[str, Any]:
    if tool.type not in (None, "custom"):
        remedy = "tools that the server would run are not supported; define a tool with an input_schema"
        raise ApiError(400, "unsupported_feature", f"{where}.type={tool.type[:60]!r}: {remedy}", param="tools")
    if tool.defer_loading:
        remedy = "there is no search for tools; leave it out"
        raise ApiError(400, "unsupported_feature", f"{where}.defer_loading: {remedy}", param="tools")
    if set(tool.allowed_callers or ()) - {"direct"}:
        remedy = "tools are called directly only"
        raise ApiError(400, "unsupported_feature", f"{where}.allowed_callers: {remedy}", param="tools")
    if tool.name is None:
        raise invalid_value(f"{where}.name: is missing", "tools")
    if tool.input_schema is None:
        raise invalid_value(f"{where}.input_schema: is missing; it must be a JSON schema, an object", "tools")
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = tool.input_schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _set_thinking(chat: ChatCompletionRequest, thinking: Thinking | None) -> None:
    """Without the field the model does as its template says."""
    if thinking is None:
        return
    budget = thinking.budget_tokens
    if thinking.type == "enabled":
        if budget is None or budget < MIN_BUDGET_TOKENS:
            raise invalid_value(f"thinking.budget_tokens={budget}: must be at least {MIN_BUDGET_TOKENS}", "thinking")
        chat.thinking_token_budget = budget
    elif budget is not None:
        raise invalid_value(f"thinking.budget_tokens: not with type {thinking.type}", "thinking")
    assert chat.chat_template_kwargs is not None
    for name in _THINKING_VARIABLES:
        chat.chat_template_kwargs.setdefault(name, thinking.type != "disabled")
    if thinking.display == "omitted":
        chat.include_reasoning = False


def _set_output(chat: ChatCompletionRequest, request: MessageFields) -> None:
    config = request.output_config
    form: OutputFormat | None = request.output_format
    if config is not None:
        chat.reasoning_effort = config.effort
        if form is not None and config.format is not None:
            raise invalid_value("output_format: is the older name of output_config.format; send one", "output_format")
        form = form or config.format
    if form is not None:
        wrapper = {"name": FORMAT_NAME, "schema": form.schema}
        chat.response_format = {"type": "json_schema", "json_schema": wrapper}
