"""An answer as a stream of events.

Owns: the order of events: message_start, blocks, message_delta, message_stop; pings; what happens on a failure.
Does not own: blocks (blocks.py), sending (sse.py).
Invariant: the events folded are the answer without streaming.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from octavo.server.anthropic.blocks import BlockWriter
from octavo.server.anthropic.errors import describe
from octavo.server.anthropic.events import MessageDelta, MessageStart, MessageStop, Ping, frame
from octavo.server.anthropic.message import end_of, make_message, usage_of
from octavo.server.exchange import Exchange
from octavo.server.requests import StreamSettings
from octavo.server.service import Service
from octavo.server.sse import EventWriter
from octavo.server.turn import Turn, TurnUpdate, follow_turn

PING = frame(Ping())


async def stream_message(exchange: Exchange, service: Service, turn: Turn) -> None:
    """Answer. Raises what happens before the first event; what happens later ends the stream with an error."""
    settings = StreamSettings.of(turn.request, service)
    maker = EventMaker(turn)

    async def events() -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(follow_turn(service, turn, interval=settings.interval)) as updates:
            async for update in updates:
                exchange.notes["finish_reason"] = update.finish_reason
                yield maker.events(update)

    writer = EventWriter(exchange, lambda error: frame(describe(error, exchange.request_id)), keep_alive=PING)
    if not await writer.send(events(), keep_alive_s=settings.keep_alive_s):
        return
    exchange.notes |= turn.meter.notes()
    await exchange.finish_stream(frame(MessageStop()))


class EventMaker:
    """Events of one answer in their order, without the last."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._blocks = BlockWriter()
        self._is_begun = False

    def events(self, update: TurnUpdate) -> bytes:
        """Those due after this update, joined."""
        parts: list[bytes] = []
        if not self._is_begun:
            if not (update.output.token_ids or update.finish_reason):
                return b""  # the prompt is being computed
            self._is_begun = True
            parts += [frame(MessageStart(make_message(self._turn, []))), PING]
        parts += map(frame, self._blocks.write(update.events))
        if update.finish_reason is not None:
            parts += map(frame, self._blocks.finish())
            end = end_of(self._turn, update, has_calls=self._blocks.has_calls)
            parts.append(frame(MessageDelta(end, usage_of(self._turn))))
        return b"".join(parts)
