"""POST /v1/chat/completions.

Owns: the answer that is not streamed.
Does not own: checks and running (turn.py), messages of answers (chat_message.py), streams (chat_stream.py).
"""

from __future__ import annotations

import contextlib

from octavo.parsers.events import Event
from octavo.server.api.chat_types import ChatChoice, ChatCompletionRequest, ChatCompletionResponse
from octavo.server.api.logprobs import prompt_logprobs
from octavo.server.chat_message import make_logprobs, message_of
from octavo.server.chat_stream import stream_chat
from octavo.server.exchange import Exchange
from octavo.server.requests import note_request, read_request
from octavo.server.service import Service
from octavo.server.turn import Turn, TurnUpdate, follow_turn, prepare_turn
from octavo.server.turn_reasoning import ReasoningNames


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, ChatCompletionRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id(request.request_id)
    async with exchange.ends_with_client(), service.counted():
        turn = await prepare_turn(request, service, request_id=request_id, model=model, asker=exchange.asker)
        note_request(exchange, service, [turn.prepared])
        if request.stream:
            await stream_chat(exchange, service, turn)
        else:
            await exchange.reply_json(await _answer(exchange, service, turn))


async def _answer(exchange: Exchange, service: Service, turn: Turn) -> ChatCompletionResponse:
    events: list[list[Event]] = [[] for _ in turn.prepared.sequences]
    ends: dict[int, TurnUpdate] = {}
    async with contextlib.aclosing(follow_turn(service, turn)) as updates:
        async for update in updates:
            events[update.index] += update.events
            ends[update.index] = update
    names = service.reasoning_names
    choices = [_choice(turn, ends[index], said, names) for index, said in enumerate(events)]
    whole = ends[0].whole
    wants_ids, request = bool(turn.request.return_token_ids), turn.request
    exchange.notes |= turn.meter.notes() | {"finish_reason": choices[0].finish_reason}
    return ChatCompletionResponse(
        id=f"chatcmpl-{turn.request_id}",
        created=service.now_s(),
        model=turn.model,
        choices=choices,
        system_fingerprint=service.fingerprint,
        usage=turn.meter.usage(),
        prompt_logprobs=prompt_logprobs(whole.prompt_logprobs),
        prompt_token_ids=whole.prompt_token_ids if wants_ids else None,
        prompt_text=whole.prompt if request.return_prompt_text else None,
    )


def _choice(turn: Turn, end: TurnUpdate, said: list[Event], names: ReasoningNames) -> ChatChoice:
    """Not streamed, the last update holds all tokens."""
    return ChatChoice(
        index=end.index,
        message=message_of(said, turn.role, turn.echoed, names),
        logprobs=make_logprobs(turn, end.output),
        finish_reason=end.finish_reason,
        stop_reason=end.stop_reason,
        token_ids=end.output.token_ids if turn.request.return_token_ids else None,
    )
