"""POST /v1/completions.

Owns: prompts of all forms, echo, the order of choices and chunks.
Does not own: sampling parameters (api/params.py), running (running.py), events (sse.py).
Invariant: the chunks of a stream joined are the answer without streaming. choices[i].index == prompt * n + sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from octavo.engine.grammar_check.turns import Asker
from octavo.engine.input.preparation import RequestTerms
from octavo.engine.input.processor import PreparedRequest
from octavo.outputs import CompletionOutput, PositionLogprobs, RequestOutput
from octavo.server.admission import CHARS_PER_TOKEN
from octavo.server.api.completion_types import (
    CompletionChoice,
    CompletionRequest,
    CompletionResponse,
)
from octavo.server.api.logprobs import completion_logprobs, prompt_logprobs
from octavo.server.api.params import build_sampling, check_common, check_logprobs
from octavo.server.completion_stream import CompletionCall, make_meter, stream_completion
from octavo.server.errors import ApiError, invalid_value
from octavo.server.exchange import Exchange
from octavo.server.requests import (
    as_prompt,
    cut,
    is_strict,
    note_request,
    read_request,
    truncation,
)
from octavo.server.running import collect
from octavo.server.service import Service
from octavo.server.structured import of_constraint, read_constraint

DEFAULT_MAX_TOKENS = 16


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, CompletionRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id(request.request_id)
    async with exchange.ends_with_client(), service.counted():
        call = await _prepare(request, service, request_id, model, exchange.asker)
        note_request(exchange, service, call.prepared)
        if request.stream:
            await stream_completion(exchange, service, call)
        else:
            await exchange.reply_json(await _answer(exchange, service, call))


# ---- before ---------------------------------------------------------------------------------------------------------


async def _prepare(
    request: CompletionRequest, service: Service, request_id: str, model: str, asker: Asker
) -> CompletionCall:
    prompts = list_prompts(request.prompt, service.config.max_prompts)
    check_common(request, service.sampling_limits, num_prompts=len(prompts))
    check_logprobs(request.logprobs, "logprobs", service.sampling_limits)
    if request.suffix:
        raise ApiError(400, "unsupported_feature", "suffix: this model has no fill-in-the-middle form", param="suffix")
    if request.prompt_embeds is not None:
        raise ApiError(400, "unsupported_feature", "prompt_embeds: is not supported", param="prompt_embeds")
    if request.thinking_token_budget not in (None, -1):
        remedy = "thinking_token_budget: belongs to chat, where reasoning is told from text"
        raise ApiError(400, "unsupported_feature", remedy, param="thinking_token_budget")
    constraint = read_constraint(request)
    scores_only = request.max_tokens == 0 and bool(request.echo)
    max_tokens = 1 if scores_only else DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens
    known = service.engine.model
    wants_prompt_logprobs = request.prompt_logprobs
    if wants_prompt_logprobs is None and request.echo:
        wants_prompt_logprobs = request.logprobs
    params = build_sampling(
        request,
        known.defaults.sampling,
        max_tokens=max_tokens,
        cap=known.defaults.max_tokens,
        logprobs=request.logprobs,
        prompt_logprobs=wants_prompt_logprobs,
        detokenize=known.tokenizer is not None,
        constraint=constraint,
    )
    guesses = [len(prompt) // CHARS_PER_TOKEN if isinstance(prompt, str) else len(prompt) for prompt in prompts]
    service.admission.check(num_requests=len(prompts), num_tokens=sum(guesses))
    num_kept = truncation(request, service, request.max_tokens)
    adds_special = request.add_special_tokens is not False
    prepared = []
    preparation = await service.engine.preparation()
    for index, prompt in enumerate(prompts):
        if num_kept is not None:
            ids = await preparation.tokenize(prompt, add_special_tokens=adds_special)
            prompts[index] = cut(ids, num_kept, request)
        with of_constraint(constraint):
            terms = RequestTerms(
                request_id=request_id if len(prompts) == 1 else f"{request_id}-{index}",
                priority=request.priority or 0,
                deadline_s=service.deadline_s,
                is_strict=is_strict(request.max_tokens, service),
                asker=asker,
            )
            salted = as_prompt(prompts[index], request.cache_salt)
            prepared.append(await preparation.prepare(salted, params, terms, add_special_tokens=adds_special))
    return CompletionCall(
        request=request,
        id=f"cmpl-{request_id}",
        model=model,
        prepared=prepared,
        echoed=[await _text_of(one, service) for one in prepared] if request.echo else [],
        scores_only=scores_only,
        names=service.token_names(request.return_tokens_as_token_ids),
        n=params.n,
    )


def list_prompts(prompt: str | list[Any], max_prompts: int) -> list[str | list[int]]:
    """One prompt or several, texts or ids. Raises ApiError; whether ids exist is the engine's check."""
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise invalid_value("prompt: is empty; give a text or at least one token id", "prompt")
    kinds = set(map(type, prompt))
    if kinds == {int}:
        return [prompt]
    if len(prompt) > max_prompts and kinds <= {str, list}:
        raise invalid_value(f"prompt: {len(prompt)} prompts, at most {max_prompts} in one request", "prompt")
    if kinds in ({str}, {list}):
        for index, one in enumerate(prompt):
            if isinstance(one, list):
                _check_ids(one, f"prompt[{index}]")
        return list(prompt)
    _check_ids(prompt, "prompt")
    return [prompt]


def _check_ids(ids: list[Any], name: str) -> None:
    if set(map(type, ids)) <= {int}:
        return
    index, wrong = next((i, value) for i, value in enumerate(ids) if type(value) is not int)
    shown = repr(wrong)[:40]
    raise invalid_value(f"{name}[{index}]={shown}: a list of token ids holds whole numbers only", "prompt")


async def _text_of(prepared: PreparedRequest, service: Service) -> str:
    text = prepared.prompt.text
    return await (await service.engine.preparation()).detokenize(prepared.prompt.token_ids) if text is None else text


# ---- at once --------------------------------------------------------------------------------------------------------


async def _answer(exchange: Exchange, service: Service, call: CompletionCall) -> CompletionResponse:
    meter = make_meter(service, call)
    choices = []
    for prompt_idx, output in enumerate(await collect(service.engine, call.prepared)):
        meter.add(prompt_idx, output)
        choices += [_choice(call, prompt_idx, output, continuation) for continuation in output.outputs]
    exchange.notes |= meter.notes()
    exchange.notes["finish_reason"] = choices[0].finish_reason
    return CompletionResponse(
        id=call.id,
        created=service.now_s(),
        model=call.model,
        choices=choices,
        system_fingerprint=service.fingerprint,
        usage=meter.usage(),
    )


def _choice(
    call: CompletionCall, prompt_idx: int, output: RequestOutput, continuation: CompletionOutput
) -> CompletionChoice:
    request = call.request
    text, token_ids, positions = continuation.text, continuation.token_ids, continuation.logprobs or []
    if call.scores_only:
        text, token_ids, positions = "", [], []
    logprobs = None
    if request.logprobs is not None:
        all_ids, all_positions = _with_prompt(call, output, token_ids, positions)
        logprobs, _ = completion_logprobs(all_ids, all_positions, call.names, offset=0)
    wants_ids = bool(request.return_token_ids)
    return CompletionChoice(
        index=prompt_idx * call.n + continuation.index,
        text=call.echoed[prompt_idx] + text if request.echo else text,
        logprobs=logprobs,
        finish_reason="length" if call.scores_only else continuation.finish_reason,
        stop_reason=None if call.scores_only else continuation.stop_reason,
        token_ids=token_ids if wants_ids else None,
        prompt_token_ids=output.prompt_token_ids if wants_ids else None,
        prompt_logprobs=prompt_logprobs(output.prompt_logprobs) if request.prompt_logprobs is not None else None,
    )


def _with_prompt(
    call: CompletionCall, output: RequestOutput, token_ids: list[int], positions: list[PositionLogprobs]
) -> tuple[Sequence[int], Sequence[PositionLogprobs | None]]:
    if not call.request.echo:
        return token_ids, positions
    return [*output.prompt_token_ids, *token_ids], [*(output.prompt_logprobs or []), *positions]
