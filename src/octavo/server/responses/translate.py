"""From a request of this API to the chat request that asks for the same.

Owns: names of fields here and there, what is refused, and whose field an error is about.
Does not own: items (input_items.py), tools (tool_fields.py), checks of values (turn.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from octavo.base.errors import ValidationError
from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.api.sampling_fields import SamplingFields
from octavo.server.errors import ApiError, as_api_error, invalid_value
from octavo.server.responses.input_items import read_input
from octavo.server.responses.request import ResponsesRequest
from octavo.server.responses.tool_fields import nest_tools

LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED = "reasoning.encrypted_content"
_OF_OTHER_TOOLS = frozenset(
    {
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
    }
)
"""Details of items that never occur here: there is nothing to leave out."""
_NOTHING_STORED = "nothing is stored here; send the whole conversation as input"
_REFUSED = {
    "previous_response_id": _NOTHING_STORED,
    "conversation": _NOTHING_STORED,
    "background": "answers are not stored; leave it out, and stream or wait",
    "prompt": "there are no stored prompts; send instructions and input",
    "context_management": "the context is not compacted; leave it out",
    "moderation": "nothing is moderated; leave it out",
}
"""Field -> what to do instead."""
_NAMED_OTHERWISE = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "logprobs": f'include: ["{LOGPROBS}"]',
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "functions": "tools",
    "function_call": "tool_choice",
}
"""Field of the chat API -> what says the same here."""
_NO_PLACE = ("echo", "prompt_logprobs", "logprob_token_ids", "return_token_ids")
"""Reports that an answer of this API has no field for."""
_SET_HERE = {"n", "stream_options", "request_id", *_NAMED_OTHERWISE, *_NO_PLACE}
_PASSED = tuple(name for name in SamplingFields.__struct_fields__ if name not in _SET_HERE)
_RENAMED = {
    "response_format": (
        "text.format",
        {"response_format.json_schema.schema": "text.format.schema", "response_format": "text.format"},
    ),
    "messages": ("input", {"messages": "input"}),
    "reasoning_effort": ("reasoning", {"reasoning_effort": "reasoning.effort"}),
    "max_tokens": ("max_output_tokens", {"max_tokens": "max_output_tokens"}),
    "max_completion_tokens": ("max_output_tokens", {"max_completion_tokens": "max_output_tokens"}),
}
"""Field that an error of the chat API names -> (field here, how messages begin there -> here)."""


def to_chat_request(request: ResponsesRequest, max_messages: int) -> ChatCompletionRequest:
    """Raises ApiError naming the field of this API."""
    _check_refused(request)
    _check_metadata(request.metadata)
    values: dict[str, Any] = {name: getattr(request, name) for name in _PASSED}
    if request.truncation == "auto":
        if request.truncate_prompt_tokens is not None:
            raise invalid_value("truncation: excludes truncate_prompt_tokens", "truncation")
        values["truncate_prompt_tokens"] = -1
    wants_logprobs = _read_include(request)
    return ChatCompletionRequest(
        **values,
        messages=read_input(request.input, request.instructions, max_messages),
        max_completion_tokens=request.max_output_tokens,
        response_format=_read_format(request),
        tools=nest_tools(request.tools),
        tool_choice=request.tool_choice,
        parallel_tool_calls=request.parallel_tool_calls,
        reasoning_effort=request.reasoning.effort if request.reasoning else None,
        include_reasoning=request.include_reasoning,
        logprobs=wants_logprobs or None,
        top_logprobs=request.top_logprobs if wants_logprobs else None,
        chat_template=request.chat_template,
        chat_template_kwargs=_variables(request),
    )


@contextlib.contextmanager
def in_own_names() -> Iterator[None]:
    """Inside, an error about a field of the chat request is one about the field here that it came from."""
    try:
        yield
    except (ApiError, ValidationError) as error:
        raise _renamed(as_api_error(error, "")) from None


def _renamed(error: ApiError) -> ApiError:
    if error.param not in _RENAMED:
        return error
    param, beginnings = _RENAMED[error.param]
    message = error.message
    for theirs, ours in beginnings.items():
        if message.startswith(theirs):
            message = ours + message.removeprefix(theirs)
            break
    return ApiError(error.status, error.code, message, param=param, headers=error.headers)


def _check_refused(request: ResponsesRequest) -> None:
    for name, remedy in _REFUSED.items():
        if getattr(request, name) not in (None, False, [], ""):
            raise ApiError(400, "unsupported_feature", f"{name}: {remedy}", param=name)
    for name, ours in _NAMED_OTHERWISE.items():
        if getattr(request, name) is not None:
            raise invalid_value(f"{name}: is a field of chat completions; here it is {ours}", name)
    for name in _NO_PLACE:
        if getattr(request, name) not in (None, False):
            raise ApiError(400, "unsupported_feature", f"{name}: answers have no place for it here", param=name)
    if request.n not in (None, 1):
        raise invalid_value("n: a response is one answer; leave it out", "n")
    options = request.stream_options
    if options is not None and not request.stream:
        raise invalid_value("stream_options: only with stream=true", "stream_options")
    if options is not None and options.include_obfuscation:
        message = "stream_options.include_obfuscation: streams are not padded here; send false or leave it out"
        raise ApiError(400, "unsupported_feature", message, param="stream_options")


def _check_metadata(metadata: dict[str, str] | None) -> None:
    if metadata is None:
        return
    if len(metadata) > 16 or any(len(key) > 64 or len(value) > 512 for key, value in metadata.items()):
        raise invalid_value("metadata: at most 16 keys of 64 characters with values of 512", "metadata")


def _read_include(request: ResponsesRequest) -> bool:
    """True: logprobs are wanted."""
    wanted = request.include or []
    for name in wanted:
        if name not in (LOGPROBS, _ENCRYPTED) and name not in _OF_OTHER_TOOLS:
            raise invalid_value(f"include: {name[:60]!r} is not known", "include")
    if request.top_logprobs and LOGPROBS not in wanted:
        raise invalid_value(f'top_logprobs: needs include: ["{LOGPROBS}"]', "top_logprobs")
    return LOGPROBS in wanted


def _read_format(request: ResponsesRequest) -> dict[str, Any] | None:
    """As response_format: the same but for one more level around a schema."""
    given = request.text.format if request.text is not None else None
    if given is None or given.get("type") != "json_schema":
        return given
    if not isinstance(given.get("schema"), dict | bool):
        raise invalid_value("text.format.schema: is missing; it must be a JSON schema", "text.format")
    return {"type": "json_schema", "json_schema": {name: item for name, item in given.items() if name != "type"}}


def _variables(request: ResponsesRequest) -> dict[str, Any] | None:
    verbosity = request.text.verbosity if request.text is not None else None
    if verbosity is None:
        return request.chat_template_kwargs
    return {"verbosity": verbosity, **(request.chat_template_kwargs or {})}
