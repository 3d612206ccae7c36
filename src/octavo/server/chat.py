"""POST /v1/chat/completions.

Owns: messages to a prompt, echo, the order of chunks: role, echo, text, end, usage, [DONE].
Does not own: sampling parameters (api/params.py), checks of messages (messages.py), running (running.py).
Invariant: the chunks of a stream joined are the answer without streaming.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from octavo.engine.inputs import PreparedRequest
from octavo.engine.prompts import ChatOptions
from octavo.outputs import CompletionOutput, RequestOutput
from octavo.server.admission import CHARS_PER_TOKEN
from octavo.server.api.chat_types import (
    ChatChoice,
    ChatChunkChoice,
    ChatCompletionRequest,
    ChatCompletionResponse,
    ChatFields,
    ChatMessageOut,
    Delta,
)
from octavo.server.api.logprobs import ChatLogprobs, TokenNames, chat_logprobs, prompt_logprobs
from octavo.server.api.params import build_sampling, check_common, check_logprobs
from octavo.server.api.usage import UsageMeter
from octavo.server.errors import ApiError, invalid_value
from octavo.server.exchange import Exchange
from octavo.server.intervals import ChunkGate
from octavo.server.messages import read_messages, read_tools
from octavo.server.requests import StreamSettings, as_prompt, cut, is_strict, note_request, read_request, truncation
from octavo.server.running import collect, follow
from octavo.server.service import Service
from octavo.server.sse import DONE, ChunkFrame, EventWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A checked request, ready to run."""

    request: ChatCompletionRequest
    id: str
    model: str
    prepared: PreparedRequest
    role: str
    echoed: str
    """Text that comes before the answer; empty without echo."""
    names: TokenNames
    num_top: int | None
    """Of the best tokens at each position; None: all that were reported."""


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, ChatCompletionRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id(request.request_id)
    async with exchange.ends_with_client(), service.counted():
        call = await _prepare(request, service, request_id, model)
        note_request(exchange, service, [call.prepared])
        if request.stream:
            await _stream(exchange, service, call)
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
                logprobs=_logprobs(call, continuation),
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


def _logprobs(call: ChatCall, continuation: CompletionOutput) -> ChatLogprobs | None:
    if not call.request.logprobs:
        return None
    return chat_logprobs(continuation.token_ids, continuation.logprobs or [], call.names, num_top=call.num_top)


# ---- as a stream ----------------------------------------------------------------------------------------------------


async def _stream(exchange: Exchange, service: Service, call: ChatCall) -> None:
    settings = StreamSettings.of(call.request, service)
    frame = ChunkFrame(
        id=call.id,
        object="chat.completion.chunk",
        created=service.now_s(),
        model=call.model,
        fingerprint=service.fingerprint,
    )
    writer = EventWriter(exchange)
    meter = UsageMeter(reports_cached=service.config.enable_prompt_tokens_details)
    maker = _ChunkMaker(call, frame, settings)
    try:
        async with (
            writer.kept_alive(settings.keep_alive_s),
            contextlib.aclosing(follow(service.engine, [call.prepared])) as outputs,
        ):
            async for _, output in outputs:
                meter.add(0, output)
                chunks = maker.chunks(output, meter)
                if chunks:
                    await writer.write(chunks)
    except Exception as error:
        await writer.fail(error)
        return
    usage = meter.usage()
    exchange.notes |= meter.notes() | {"finish_reason": maker.last_reason}
    await exchange.finish_stream((frame.usage(usage) if settings.includes_usage else b"") + DONE)


class _ChunkMaker:
    """Chunks of one answer in their order."""

    def __init__(self, call: ChatCall, frame: ChunkFrame, settings: StreamSettings) -> None:
        self._call = call
        self._frame = frame
        self._has_usage = settings.has_usage_in_chunks
        self._gates = [ChunkGate(settings.interval) for _ in call.prepared.sequences]
        self._is_begun = False
        self.last_reason: str | None = None

    def chunks(self, output: RequestOutput, meter: UsageMeter) -> bytes:
        """Those due after this output, joined."""
        usage = meter.usage() if self._has_usage else None
        parts: list[bytes] = []
        if not self._is_begun:
            if not any(c.token_ids or c.finished() for c in output.outputs):
                return b""  # the prompt is being computed
            self._is_begun = True
            parts += self._first_chunks(output, usage)
        for continuation in output.outputs:
            due = self._gates[continuation.index].pass_through(continuation)
            choice = self._choice(due) if due is not None else None
            if choice is not None:
                parts.append(self._frame.choice(choice, usage, is_last=choice.finish_reason is not None))
        return b"".join(parts)

    def _first_chunks(self, output: RequestOutput, usage: Any) -> list[bytes]:
        call = self._call
        extra: dict[str, object] = {}
        if call.request.return_token_ids:
            extra["prompt_token_ids"] = output.prompt_token_ids
        if call.request.return_prompt_text:
            extra["prompt_text"] = output.prompt
        indices = range(len(self._gates))
        parts = [
            self._frame.choice(
                ChatChunkChoice(index=index, delta=Delta(role=call.role, content="")), usage, extra=extra
            )
            for index in indices
        ]
        if call.echoed:
            parts += [
                self._frame.choice(ChatChunkChoice(index=index, delta=Delta(content=call.echoed)), usage)
                for index in indices
            ]
        return parts

    def _choice(self, due: CompletionOutput) -> ChatChunkChoice | None:
        request = self._call.request
        is_silent = not (due.text or due.finished())
        if is_silent and not (due.token_ids and (request.logprobs or request.return_token_ids)):
            return None
        choice = ChatChunkChoice(index=due.index, delta=Delta())
        if due.text or not due.finished():
            choice.delta.content = due.text
        if request.logprobs and due.token_ids:
            choice.logprobs = _logprobs(self._call, due)
        if request.return_token_ids:
            choice.token_ids = due.token_ids
        if due.finished():
            choice.finish_reason, choice.stop_reason = due.finish_reason, due.stop_reason
            self.last_reason = due.finish_reason
        return choice
