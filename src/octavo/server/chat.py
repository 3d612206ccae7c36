"""POST /v1/chat/completions.

Owns: messages to a prompt, echo, the answer that is not streamed.
Does not own: sampling parameters (api/params.py), checks of messages (messages.py), running (running.py).
"""

from __future__ import annotations

from typing import Any

from octavo.engine.input.prompts import ChatOptions
from octavo.server.admission import CHARS_PER_TOKEN
from octavo.server.api.chat_types import (
    ChatChoice,
    ChatCompletionRequest,
    ChatCompletionResponse,
    ChatFields,
    ChatMessageOut,
)
from octavo.server.api.logprobs import prompt_logprobs
from octavo.server.api.params import build_sampling, check_common, check_logprobs
from octavo.server.api.usage import UsageMeter
from octavo.server.chat_stream import ChatCall, make_logprobs, stream_chat
from octavo.server.errors import ApiError, invalid_value
from octavo.server.exchange import Exchange
from octavo.server.messages import read_messages, read_tools
from octavo.server.requests import as_prompt, cut, is_strict, note_request, read_request, truncation
from octavo.server.running import collect
from octavo.server.service import Service


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, ChatCompletionRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id(request.request_id)
    async with exchange.ends_with_client(), service.counted():
        call = await _prepare(request, service, request_id, model)
        note_request(exchange, service, [call.prepared])
        if request.stream:
            await stream_chat(exchange, service, call)
        else:
            await exchange.reply_json(await _answer(exchange, service, call))


# ---- before ---------------------------------------------------------------------------------------------------------


async def _prepare(request: ChatCompletionRequest, service: Service, request_id: str, model: str) -> ChatCall:
    limits, engine = service.sampling_limits, service.engine
    check_common(request, limits, num_prompts=1)
    num_logprobs = _num_logprobs(request)
    check_logprobs(num_logprobs, "top_logprobs", limits)
    messages, options = read_conversation(request, service)
    max_tokens = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    params = build_sampling(
        request,
        engine.default_sampling_params,
        max_tokens=max_tokens,
        cap=engine.default_max_tokens,
        logprobs=num_logprobs,
        prompt_logprobs=request.prompt_logprobs,
        detokenize=engine.tokenizer is not None,
    )
    guess = sum(len(message["content"]) for message in messages) // CHARS_PER_TOKEN
    service.admission.check(num_requests=1, num_tokens=guess)
    details: dict[str, Any] = {
        "request_id": request_id,
        "priority": request.priority or 0,
        "deadline_s": service.deadline_s,
        "is_strict": is_strict(max_tokens, service),
    }
    num_kept = truncation(request, service, max_tokens)
    adds_special = bool(request.add_special_tokens)
    if num_kept is None:
        prepared = await engine.prepare_chat(
            messages,
            params,
            chat=options,
            cache_salt=request.cache_salt,
            add_special_tokens=adds_special,
            **details,
        )
    else:
        ids = await engine.tokenize_chat(messages, options, add_special_tokens=adds_special)
        prepared = await engine.prepare(as_prompt(cut(ids, num_kept, request), request.cache_salt), params, **details)
    last = messages[-1]
    role = service.config.response_role if options.add_generation_prompt else last["role"]
    return ChatCall(
        request=request,
        id=f"chatcmpl-{request_id}",
        model=model,
        prepared=prepared,
        role=role,
        echoed=last["content"] if request.echo and last["role"] == role else "",
        names=service.token_names(request.return_tokens_as_token_ids),
        num_top=None if request.top_logprobs == -1 or request.logprob_token_ids else (request.top_logprobs or 0),
    )


def _num_logprobs(request: ChatCompletionRequest) -> int | None:
    if not request.logprobs:
        if request.top_logprobs:
            raise invalid_value("top_logprobs: needs logprobs=true", "top_logprobs")
        return None
    return request.top_logprobs or 0


def read_conversation(request: ChatFields, service: Service) -> tuple[list[dict[str, Any]], ChatOptions]:
    """Messages and how to render them. Raises ApiError."""
    config = service.config
    messages = read_messages(request.messages, config.max_messages)
    tools = read_tools(request, excludes_unused=config.exclude_tools_when_tool_choice_none)
    for name in ("mm_processor_kwargs", "media_io_kwargs"):
        if getattr(request, name):
            raise ApiError(400, "unsupported_feature", f"{name}: this model reads text only", param=name)
    variables = {**config.default_chat_template_kwargs, **(request.chat_template_kwargs or {})}
    _check_variables(variables)
    if request.documents is not None:
        variables["documents"] = request.documents
    if request.reasoning_effort is not None:
        variables.setdefault("reasoning_effort", request.reasoning_effort)
    template = request.chat_template
    if template is not None and not config.trust_request_chat_template:
        raise invalid_value("chat_template: templates of requests are not accepted here", "chat_template")
    continues = bool(request.continue_final_message)
    adds = not continues if request.add_generation_prompt is None else request.add_generation_prompt
    if continues and adds:
        raise invalid_value(
            "continue_final_message: excludes add_generation_prompt; set one of them to false", "continue_final_message"
        )
    return messages, ChatOptions(
        chat_template=template,
        add_generation_prompt=adds,
        continue_final_message=continues,
        tools=tools,
        template_kwargs=variables or None,
        control_texts=service.control_texts,
    )


_RESERVED = frozenset(
    {"chat_template", "messages", "tools", "tokenize", "add_generation_prompt", "continue_final_message"}
)


def _check_variables(variables: dict[str, Any]) -> None:
    reserved = sorted(_RESERVED & variables.keys())
    if reserved:
        remedy = f"{reserved[0]} cannot be set here; it has a field of its own"
        raise invalid_value(f"chat_template_kwargs: {remedy}", "chat_template_kwargs")


# ---- at once --------------------------------------------------------------------------------------------------------


async def _answer(exchange: Exchange, service: Service, call: ChatCall) -> ChatCompletionResponse:
    (output,) = await collect(service.engine, [call.prepared])
    meter = UsageMeter(reports_cached=service.config.enable_prompt_tokens_details)
    meter.add(0, output)
    request = call.request
    wants_ids = bool(request.return_token_ids)
    exchange.notes |= meter.notes()
    exchange.notes["finish_reason"] = output.outputs[0].finish_reason
    return ChatCompletionResponse(
        id=call.id,
        created=service.now_s(),
        model=call.model,
        choices=[
            ChatChoice(
                index=continuation.index,
                message=ChatMessageOut(role=call.role, content=call.echoed + continuation.text),
                logprobs=make_logprobs(call, continuation),
                finish_reason=continuation.finish_reason,
                stop_reason=continuation.stop_reason,
                token_ids=continuation.token_ids if wants_ids else None,
            )
            for continuation in output.outputs
        ],
        system_fingerprint=service.fingerprint,
        usage=meter.usage(),
        prompt_logprobs=prompt_logprobs(output.prompt_logprobs),
        prompt_token_ids=output.prompt_token_ids if wants_ids else None,
        prompt_text=output.prompt if request.return_prompt_text else None,
    )
