"""POST /v1/responses, and the routes that would need stored answers.

Owns: the order of steps, the answer that is not streamed.   Does not own: streams (stream.py).
"""

from __future__ import annotations

import contextlib

from octavo.engine.grammar_check.turns import Asker
from octavo.server.errors import ApiError
from octavo.server.exchange import Exchange
from octavo.server.requests import note_request, read_request
from octavo.server.responses.answer import Answer
from octavo.server.responses.events import StreamEvent
from octavo.server.responses.items import Response
from octavo.server.responses.request import ResponsesRequest
from octavo.server.responses.stream import stream_response
from octavo.server.responses.translate import in_own_names, to_chat_request
from octavo.server.service import Service
from octavo.server.turn import Turn, follow_turn, prepare_turn

STORED = {"": ("GET", "DELETE"), "cancel": ("POST",), "input_items": ("GET",)}
"""Behind /v1/responses/{id}/ -> methods."""


async def serve(exchange: Exchange, service: Service) -> None:
    """Answer one request. Raises ApiError, and what the engine raises."""
    request = await read_request(exchange, service, ResponsesRequest)
    model = service.choose_model(request.model)
    request_id = exchange.choose_request_id(request.request_id)
    async with exchange.ends_with_client(), service.counted():
        turn = await _prepare(request, service, request_id, model, exchange.asker)
        note_request(exchange, service, [turn.prepared])
        if request.stream:
            await stream_response(exchange, service, request, turn)
        else:
            await exchange.reply_json(await answer_whole(exchange, service, request, turn))


def methods_of_stored(path: str) -> tuple[str, ...]:
    """What may be asked of the answer behind /v1/responses/; empty: there is no such route."""
    answer_id, _, action = path.partition("/")
    return STORED.get(action, ()) if answer_id else ()


def nothing_stored() -> ApiError:
    """The answer to each of them."""
    return ApiError(
        404, "not_found", "Responses are not stored by this server: there is none to get, cancel or delete."
    )


async def _prepare(request: ResponsesRequest, service: Service, request_id: str, model: str, asker: Asker) -> Turn:
    chat = to_chat_request(request, service.config.max_messages)
    with in_own_names():
        turn = await prepare_turn(chat, service, request_id=request_id, model=model, asker=asker)
    if chat.logprobs and turn.make_parser is not None:
        remedy = 'not where calls or reasoning are told from text; send tool_choice "none", reasoning.effort "none"'
        raise ApiError(400, "unsupported_feature", f"include: logprobs: {remedy}", param="include")
    return turn


async def answer_whole(exchange: Exchange, service: Service, request: ResponsesRequest, turn: Turn) -> Response:
    """What is answered without streaming. Raises ApiError when the request fails."""
    answer = Answer(request, turn, _ignore, service.now_s())
    async with contextlib.aclosing(follow_turn(service, turn)) as updates:
        async for update in updates:
            answer.take(update)
    exchange.notes |= turn.meter.notes() | {"finish_reason": answer.finish_reason}
    return answer.end(service.now_s())


def _ignore(event: StreamEvent) -> None:
    """Nobody listens."""
