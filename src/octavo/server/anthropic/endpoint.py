"""POST /v1/messages and /v1/messages/count_tokens.

Owns: the answer that is not streamed, the count.
Does not own: the request (request.py), checks and running (turn.py), blocks (blocks.py), streams (stream.py).
"""

from __future__ import annotations

import contextlib

from octavo.server.anthropic.blocks import BlockWriter, fold_blocks
from octavo.server.anthropic.events import BlockEvent
from octavo.server.anthropic.message import end_of, make_message
from octavo.server.anthropic.message_types import CountTokensRequest, Message, MessagesRequest, TokenCount
from octavo.server.anthropic.request import to_chat, to_prompt
from octavo.server.anthropic.stream import stream_message
from octavo.server.chat_conversation import read_apart, read_conversation
from octavo.server.exchange import Exchange
from octavo.server.requests import note_request, read_request
from octavo.server.service import Service
from octavo.server.turn import Turn, follow_turn, prepare_turn


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, MessagesRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id()
    async with exchange.ends_with_client(), service.counted():
        turn = await prepare_turn(
            to_chat(request),
            service,
            request_id=request_id,
            model=model,
            asker=exchange.asker,
            cuts_max_tokens=True,
        )
        note_request(exchange, service, [turn.prepared])
        await answer_message(exchange, service, turn)


async def answer_message(exchange: Exchange, service: Service, turn: Turn) -> None:
    """Run a turn and send what comes of it, streamed or not. Raises ApiError when it fails before that."""
    if turn.request.stream:
        await stream_message(exchange, service, turn)
    else:
        await exchange.reply_json(await _whole(exchange, service, turn))


async def _whole(exchange: Exchange, service: Service, turn: Turn) -> Message:
    writer, events = BlockWriter(), list[BlockEvent]()
    last = None
    async with contextlib.aclosing(follow_turn(service, turn)) as updates:
        async for update in updates:
            events += writer.write(update.events)
            last = update
    assert last is not None
    events += writer.finish()
    exchange.notes |= turn.meter.notes() | {"finish_reason": last.finish_reason}
    return make_message(turn, fold_blocks(events), end_of(turn, last, has_calls=writer.has_calls))


async def count_tokens(exchange: Exchange, service: Service) -> None:
    """How long the prompt is that a request makes. Raises ApiError, ValidationError."""
    request = await read_request(exchange, service, CountTokensRequest)
    service.choose_model(request.model)
    async with exchange.ends_with_client():
        chat = to_prompt(request)
        talk = await read_apart(chat, service, lambda: read_conversation(chat, service))
        service.admission.check(num_requests=0, num_tokens=0)
        ids = await (await service.engine.preparation()).tokenize_chat(talk.messages, talk.options)
        await exchange.reply_json(TokenCount(input_tokens=len(ids)))
