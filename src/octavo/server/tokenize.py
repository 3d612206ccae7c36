"""POST /tokenize and /detokenize."""

from __future__ import annotations

from typing import Any

import msgspec

from octavo.server.admission import CHARS_PER_TOKEN
from octavo.server.api.chat_types import ChatFields
from octavo.server.chat_conversation import read_apart, read_conversation
from octavo.server.errors import ApiError, invalid_value
from octavo.server.exchange import Exchange
from octavo.server.requests import read_request
from octavo.server.service import Service


class TokenizeRequest(ChatFields, kw_only=True):
    """A prompt or messages."""

    messages: list[dict[str, Any]] = msgspec.field(default_factory=list)
    """Empty: `prompt` is given."""
    prompt: str | None = None
    return_token_strs: bool | None = None


class TokenizeResponse(msgspec.Struct, kw_only=True):
    """Token ids, and their texts if asked for."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None = None


class DetokenizeRequest(msgspec.Struct, kw_only=True):
    """Token ids."""

    tokens: list[int]
    model: str | None = None


class DetokenizeResponse(msgspec.Struct, kw_only=True):
    """Their text, special tokens included."""

    prompt: str


async def tokenize(exchange: Exchange, service: Service) -> None:
    """Raises ApiError, ValidationError."""
    request = await read_request(exchange, service, TokenizeRequest)
    service.choose_model(request.model)
    if (request.prompt is None) == (not request.messages):
        raise invalid_value("give either prompt or messages", "prompt")
    async with exchange.ends_with_client():
        preparation = await service.engine.preparation()
        if request.prompt is not None:
            service.admission.check(num_requests=0, num_tokens=len(request.prompt) // CHARS_PER_TOKEN)
            adds_special = request.add_special_tokens is not False
            ids = await preparation.tokenize(request.prompt, add_special_tokens=adds_special)
        else:
            talk = await read_apart(request, service, lambda: read_conversation(request, service))
            service.admission.check(num_requests=0, num_tokens=0)
            adds_special = bool(request.add_special_tokens)
            ids = await preparation.tokenize_chat(talk.messages, talk.options, add_special_tokens=adds_special)
        tokenizer = service.engine.model.tokenizer
        strs = [tokenizer.token_text(i) for i in ids] if request.return_token_strs and tokenizer is not None else None
        await exchange.reply_json(
            TokenizeResponse(count=len(ids), max_model_len=service.engine.max_model_len, tokens=ids, token_strs=strs)
        )


async def detokenize(exchange: Exchange, service: Service) -> None:
    """Raises ApiError, ValidationError."""
    request = await read_request(exchange, service, DetokenizeRequest)
    service.choose_model(request.model)
    service.admission.check(num_requests=0, num_tokens=0)
    tokenizer = service.engine.model.tokenizer
    if tokenizer is None:
        raise ApiError(400, "unsupported_feature", "This server runs without a tokenizer.")
    ids = request.tokens
    if ids and not (min(ids) >= 0 and max(ids) < tokenizer.vocab_size):
        index, wrong = next((i, value) for i, value in enumerate(ids) if not 0 <= value < tokenizer.vocab_size)
        shown = wrong if abs(wrong) < 10**30 else "a huge number"
        message = f"tokens[{index}]={shown}: token ids are whole numbers from 0 to {tokenizer.vocab_size - 1}"
        raise invalid_value(message, "tokens")
    async with exchange.ends_with_client():
        await exchange.reply_json(DetokenizeResponse(prompt=await (await service.engine.preparation()).detokenize(ids)))
