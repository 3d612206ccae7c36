"""Running the prepared prompts of one HTTP request, and reading their outputs together.

Owns: opening all streams or none, leaving them whatever happens, turning failed outputs into errors.
Does not own: what is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager

from octavo.base.log import get_logger
from octavo.engine.front.async_llm import AsyncLLM
from octavo.engine.front.streams import OutputStream
from octavo.engine.input.processor import PreparedRequest
from octavo.outputs import CompletionOutput, RequestOutput
from octavo.server.errors import ApiError, hidden_error, hopeless, unavailable

logger = get_logger(__name__)


async def collect(engine: AsyncLLM, requests: Sequence[PreparedRequest]) -> list[RequestOutput]:
    """The last output of each, in order. Raises ApiError when one fails."""
    with _opened(engine, requests) as streams:
        return [check_output(await _last(stream), engine) for stream in streams]


async def follow(
    engine: AsyncLLM, requests: Sequence[PreparedRequest]
) -> AsyncGenerator[tuple[int, RequestOutput], None]:
    """(prompt, output) as they come. A slow reader gets fewer, larger ones. Raises ApiError when one fails."""
    with _opened(engine, requests) as streams:
        if len(streams) == 1:
            async for output in streams[0]:
                yield 0, check_output(output, engine)
            return
        async for item in _merge(engine, streams):
            yield item


async def _merge(engine: AsyncLLM, streams: Sequence[OutputStream]) -> AsyncGenerator[tuple[int, RequestOutput], None]:
    """Each stream is asked for its next output only when the one before was taken."""
    waiting = {asyncio.ensure_future(anext(stream)): index for index, stream in enumerate(streams)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                index = waiting.pop(task)
                output = check_output(task.result(), engine)
                yield index, output
                if not output.finished:
                    waiting[asyncio.ensure_future(anext(streams[index]))] = index
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@contextmanager
def _opened(engine: AsyncLLM, requests: Sequence[PreparedRequest]) -> Iterator[list[OutputStream]]:
    streams: list[OutputStream] = []
    try:
        for request in requests:
            streams.append(engine.open(request))
        yield streams
    finally:
        for stream in streams:
            engine.leave(stream)


async def _last(stream: OutputStream) -> RequestOutput:
    last = None
    async for output in stream:
        last = output
    assert last is not None
    return last


def _as_api_error(failed: CompletionOutput, request_id: str) -> ApiError:
    match failed.error_kind:
        case "request":
            return ApiError(422, "constraint_failed", f"The request cannot be finished: {failed.error}.")
        case "limit":
            return ApiError(500, "request_failed", f"The request failed: {failed.error}.")
        case "numeric":
            logger.warning("request %s: %s", request_id, failed.error)
            return hopeless(500, "numerical_error", f"The request cannot be computed: {failed.error}.")
        case "deadline":
            text = f"The request was not finished in the time that the server allows one: {failed.error}."
            return hopeless(504, "deadline_exceeded", text)
        case _:
            return hidden_error(request_id, failed.error)


def check_output(output: RequestOutput, engine: AsyncLLM) -> RequestOutput:
    """The output, or ApiError for one whose request failed or was ended from outside."""
    for continuation in output.outputs:
        if continuation.finish_reason == "error":
            if not engine.state.takes_requests:
                raise unavailable("unavailable", f"The engine is {engine.state.value}; the request was not finished.")
            raise _as_api_error(continuation, output.request_id)
        if continuation.finish_reason == "abort":
            raise unavailable("shutting_down", "The request was aborted by the server.")
    return output
