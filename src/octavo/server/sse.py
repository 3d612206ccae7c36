"""Server-sent events of one answer.

Owns: the frame of a chunk, rendered once per answer; the end of a stream; comments that keep it alive.
Does not own: what chunks hold.   Cost: one small encoding and one write per chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec

from octavo.server.api.usage import Usage
from octavo.server.cycle import ClientDisconnectedError
from octavo.server.errors import ApiError, as_api_error
from octavo.server.exchange import Exchange

DONE = b"data: [DONE]\n\n"
_ENCODE = msgspec.json.Encoder().encode


class ChunkFrame:
    """Everything of a chunk that is the same in all chunks of an answer."""

    def __init__(self, *, id: str, object: str, created: int, model: str, fingerprint: str) -> None:
        head = {"id": id, "object": object, "created": created, "model": model}
        self._head = b"data: " + _ENCODE(head)[:-1] + b',"choices":['
        self._fingerprint = b',"system_fingerprint":' + _ENCODE(fingerprint)

    def choice(self, choice: object, usage: Usage | None, *, is_last: bool = False, extra: object = None) -> bytes:
        """A chunk with one choice. `extra`: a dict of further fields."""
        parts = [self._head, _ENCODE(choice), b"]"]
        if is_last:
            parts.append(self._fingerprint)
        if usage is not None:
            parts += [b',"usage":', _ENCODE(usage)]
        if extra:
            parts += [b",", _ENCODE(extra)[1:-1]]
        parts.append(b"}\n\n")
        return b"".join(parts)

    def usage(self, usage: Usage) -> bytes:
        """The chunk without choices at the end."""
        return self._head + b'],"usage":' + _ENCODE(usage) + b"}\n\n"


class EventWriter:
    """Sends chunks; those that are made together go out together."""

    def __init__(
        self,
        exchange: Exchange,
        last_words: Callable[[ApiError], bytes],
        *,
        keep_alive: bytes = b": keep-alive\n\n",
    ) -> None:
        """last_words: how a stream ends that fails. keep_alive: what a stream that is silent for long gets."""
        self._exchange = exchange
        self._last_words = last_words
        self._keep_alive = keep_alive
        self._last_s = time.monotonic()

    async def send(self, chunks: AsyncGenerator[bytes, None], *, keep_alive_s: float) -> bool:
        """All of them; the answer is not finished. False: it is, with an error, since one could not be made.

        Raises what happens before the first chunk, which can still be answered, and ClientDisconnectedError.
        keep_alive_s: how long the stream may be silent; 0: for ever.
        """
        try:
            async with self._kept_alive(keep_alive_s), contextlib.aclosing(chunks):
                async for chunk in chunks:
                    if chunk:
                        await self._write(chunk)
        except Exception as error:
            await self._fail(error)
            return False
        return True

    async def _write(self, data: bytes) -> None:
        """Send; the first call starts the answer."""
        if self._exchange.status is None:
            await self._exchange.start_stream()
        self._last_s = time.monotonic()
        await self._exchange.write(data)

    async def _fail(self, error: Exception) -> None:
        """End the stream with an error. One that has not started can still be answered: then `error` is raised."""
        if self._exchange.status is None or isinstance(error, ClientDisconnectedError):
            raise error
        failure = as_api_error(error, self._exchange.request_id)
        self._exchange.notes |= {"finish_reason": "error", "error": failure.code}
        await self._exchange.finish_stream(self._last_words(failure))

    @contextlib.asynccontextmanager
    async def _kept_alive(self, interval_s: float) -> AsyncIterator[None]:
        """Inside, a stream that is silent for interval_s gets a sign of life; 0: never."""
        if not interval_s:
            yield
            return
        task = asyncio.get_running_loop().create_task(self._show_life(interval_s))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _show_life(self, interval_s: float) -> None:
        while True:
            left_s = self._last_s + interval_s - time.monotonic()
            if left_s > 0:
                await asyncio.sleep(left_s)
            else:
                await self._write(self._keep_alive)
