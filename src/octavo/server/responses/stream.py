"""An answer as a stream of events.

Owns: the first and the last events.   Does not own: events of items (writers.py), their bytes (events.py).
Invariant: the response in the last event is the answer without streaming. There is no [DONE]: that event is the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from octavo.server.errors import ApiError
from octavo.server.exchange import Exchange
from octavo.server.requests import StreamSettings
from octavo.server.responses.answer import Answer
from octavo.server.responses.events import ErrorEvent, EventBuffer, ResponseEvent
from octavo.server.responses.request import ResponsesRequest
from octavo.server.service import Service
from octavo.server.sse import EventWriter
from octavo.server.turn import Turn, follow_turn


async def stream_response(exchange: Exchange, service: Service, request: ResponsesRequest, turn: Turn) -> None:
    """Answer. Raises what happens before the first event; what happens later ends the stream with an error."""
    settings = StreamSettings.of(turn.request, service)
    events = EventBuffer()
    answer = Answer(request, turn, events.write, service.now_s())

    async def written() -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(follow_turn(service, turn, interval=settings.interval)) as updates:
            async for update in updates:
                if not (events.is_begun or update.output.token_ids or update.finish_reason):
                    continue  # the prompt is being computed
                _begin(answer, events)
                answer.take(update)
                yield events.take()

    def last_words(error: ApiError) -> bytes:
        _begin(answer, events)
        events.write(ErrorEvent(type="error", code=error.code, message=error.message, param=error.param))
        events.write(ResponseEvent(type="response.failed", response=answer.fail(error)))
        return events.take()

    if not await EventWriter(exchange, last_words).send(written(), keep_alive_s=settings.keep_alive_s):
        return
    exchange.notes |= turn.meter.notes() | {"finish_reason": answer.finish_reason}
    response = answer.end(service.now_s())
    events.write(ResponseEvent(type=f"response.{response.status}", response=response))
    await exchange.finish_stream(events.take())


def _begin(answer: Answer, events: EventBuffer) -> None:
    """The events before all others, once."""
    if not events.is_begun:
        for kind in ("response.created", "response.in_progress"):
            events.write(ResponseEvent(type=kind, response=answer.begun))
