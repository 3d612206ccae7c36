"""A stream of chunks from its start to [DONE]: what the two APIs share.

Owns: the frame, the end of a stream, what happens when it fails on the way.   Does not own: chunks, events (sse.py).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from octavo.server.api.usage import UsageMeter
from octavo.server.exchange import Exchange
from octavo.server.requests import StreamSettings
from octavo.server.service import Service
from octavo.server.sse import DONE, ChunkFrame, EventWriter


def make_frame(service: Service, *, id: str, kind: str, model: str) -> ChunkFrame:
    """kind: `object` of every chunk."""
    return ChunkFrame(id=id, object=kind, created=service.now_s(), model=model, fingerprint=service.fingerprint)


async def send_chunks(
    exchange: Exchange,
    frame: ChunkFrame,
    settings: StreamSettings,
    meter: UsageMeter,
    chunks: AsyncGenerator[bytes, None],
) -> None:
    """Answer. Raises what happens before the first chunk; what happens later ends the stream with an error."""
    writer = EventWriter(exchange, lambda error: b"data: " + error.body() + b"\n\n" + DONE)
    if not await writer.send(chunks, keep_alive_s=settings.keep_alive_s):
        return
    exchange.notes |= meter.notes()
    await exchange.finish_stream((frame.usage(meter.usage()) if settings.includes_usage else b"") + DONE)
