"""A checked chat request, and its answer as a stream.

Owns: the order of chunks: role, echo, text, end, usage, [DONE].   Does not own: events (sse.py), checks (chat.py).
Invariant: the chunks joined are the answer without streaming.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from octavo.engine.input.processor import PreparedRequest
from octavo.outputs import CompletionOutput, RequestOutput
from octavo.server.api.chat_types import ChatChunkChoice, ChatCompletionRequest, Delta
from octavo.server.api.logprobs import ChatLogprobs, TokenNames, chat_logprobs
from octavo.server.api.usage import Usage, UsageMeter
from octavo.server.exchange import Exchange
from octavo.server.intervals import ChunkGate
from octavo.server.requests import StreamSettings
from octavo.server.running import follow
from octavo.server.service import Service
from octavo.server.sse import DONE, ChunkFrame, EventWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A checked request, ready to run."""

    request: ChatCompletionRequest
    id: str
    model: str
    prepared: PreparedRequest
    role: str
    echoed: str
    """Text that comes before the answer; empty without echo."""
    names: TokenNames
    num_top: int | None
    """Of the best tokens at each position; None: all that were reported."""


def make_logprobs(call: ChatCall, continuation: CompletionOutput) -> ChatLogprobs | None:
    """Of the tokens in this output; None: not asked for."""
    if not call.request.logprobs:
        return None
    return chat_logprobs(continuation.token_ids, continuation.logprobs or [], call.names, num_top=call.num_top)


async def stream_chat(exchange: Exchange, service: Service, call: ChatCall) -> None:
    """Answer. Raises what happens before the first chunk; what happens later ends the stream with an error."""
    settings = StreamSettings.of(call.request, service)
    frame = ChunkFrame(
        id=call.id,
        object="chat.completion.chunk",
        created=service.now_s(),
        model=call.model,
        fingerprint=service.fingerprint,
    )
    writer = EventWriter(exchange)
    meter = UsageMeter(reports_cached=service.config.enable_prompt_tokens_details)
    maker = _ChunkMaker(call, frame, settings)
    try:
        async with (
            writer.kept_alive(settings.keep_alive_s),
            contextlib.aclosing(follow(service.engine, [call.prepared])) as outputs,
        ):
            async for _, output in outputs:
                meter.add(0, output)
                chunks = maker.chunks(output, meter)
                if chunks:
                    await writer.write(chunks)
    except Exception as error:
        await writer.fail(error)
        return
    usage = meter.usage()
    exchange.notes |= meter.notes() | {"finish_reason": maker.last_reason}
    await exchange.finish_stream((frame.usage(usage) if settings.includes_usage else b"") + DONE)


class _ChunkMaker:
    """Chunks of one answer in their order."""

    def __init__(self, call: ChatCall, frame: ChunkFrame, settings: StreamSettings) -> None:
        self._call = call
        self._frame = frame
        self._has_usage = settings.has_usage_in_chunks
        self._gates = [ChunkGate(settings.interval) for _ in call.prepared.sequences]
        self._is_begun = False
        self.last_reason: str | None = None

    def chunks(self, output: RequestOutput, meter: UsageMeter) -> bytes:
        """Those due after this output, joined."""
        usage = meter.usage() if self._has_usage else None
        parts: list[bytes] = []
        if not self._is_begun:
            if not any(c.token_ids or c.finished() for c in output.outputs):
                return b""  # the prompt is being computed
            self._is_begun = True
            parts += self._first_chunks(output, usage)
        for continuation in output.outputs:
            due = self._gates[continuation.index].pass_through(continuation)
            choice = self._choice(due) if due is not None else None
            if choice is not None:
                parts.append(self._frame.choice(choice, usage, is_last=choice.finish_reason is not None))
        return b"".join(parts)

    def _first_chunks(self, output: RequestOutput, usage: Usage | None) -> list[bytes]:
        call = self._call
        extra: dict[str, object] = {}
        if call.request.return_token_ids:
            extra["prompt_token_ids"] = output.prompt_token_ids
        if call.request.return_prompt_text:
            extra["prompt_text"] = output.prompt
        indices = range(len(self._gates))
        parts = [
            self._frame.choice(
                ChatChunkChoice(index=index, delta=Delta(role=call.role, content="")), usage, extra=extra
            )
            for index in indices
        ]
        if call.echoed:
            parts += [
                self._frame.choice(ChatChunkChoice(index=index, delta=Delta(content=call.echoed)), usage)
                for index in indices
            ]
        return parts

    def _choice(self, due: CompletionOutput) -> ChatChunkChoice | None:
        request = self._call.request
        is_silent = not (due.text or due.finished())
        if is_silent and not (due.token_ids and (request.logprobs or request.return_token_ids)):
            return None
        choice = ChatChunkChoice(index=due.index, delta=Delta())
        if due.text or not due.finished():
            choice.delta.content = due.text
        if request.logprobs and due.token_ids:
            choice.logprobs = make_logprobs(self._call, due)
        if request.return_token_ids:
            choice.token_ids = due.token_ids
        if due.finished():
            choice.finish_reason, choice.stop_reason = due.finish_reason, due.stop_reason
            self.last_reason = due.finish_reason
        return choice
