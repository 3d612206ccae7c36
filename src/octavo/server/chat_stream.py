"""A chat answer as a stream.

Owns: the order of chunks: role, echo, what is said, end, usage, [DONE].   Does not own: checks (turn.py), the stream
itself (chunk_stream.py).
Invariant: the chunks joined are the answer without streaming.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from octavo.outputs import RequestOutput
from octavo.server.api.chat_types import ChatChunkChoice, Delta
from octavo.server.api.usage import Usage
from octavo.server.chat_message import delta_of, make_logprobs
from octavo.server.chunk_stream import make_frame, send_chunks
from octavo.server.exchange import Exchange
from octavo.server.requests import StreamSettings
from octavo.server.service import Service
from octavo.server.sse import ChunkFrame
from octavo.server.turn import Turn, TurnUpdate, follow_turn
from octavo.server.turn_reasoning import ReasoningNames


async def stream_chat(exchange: Exchange, service: Service, turn: Turn) -> None:
    """Answer. Raises what happens before the first chunk; what happens later ends the stream with an error."""
    settings = StreamSettings.of(turn.request, service)
    frame = make_frame(service, id=f"chatcmpl-{turn.request_id}", kind="chat.completion.chunk", model=turn.model)
    maker = _ChunkMaker(turn, frame, service.reasoning_names)

    async def chunks() -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(follow_turn(service, turn, interval=settings.interval)) as updates:
            async for update in updates:
                yield maker.chunks(update, turn.meter.usage() if settings.has_usage_in_chunks else None)
        exchange.notes["finish_reason"] = maker.last_reason

    await send_chunks(exchange, frame, settings, turn.meter, chunks())


class _ChunkMaker:
    """Chunks of one answer in their order."""

    def __init__(self, turn: Turn, frame: ChunkFrame, names: ReasoningNames) -> None:
        self._turn = turn
        self._frame = frame
        self._names = names
        self._is_begun = False
        self.last_reason: str | None = None

    def chunks(self, update: TurnUpdate, usage: Usage | None) -> bytes:
        """Those due after this update, joined."""
        parts: list[bytes] = []
        if not self._is_begun:
            if not (update.output.token_ids or update.finish_reason):
                return b""  # the prompt is being computed
            self._is_begun = True
            parts += self._first_chunks(update.whole, usage)
        choice = self._choice(update)
        if choice is not None:
            parts.append(self._frame.choice(choice, usage, is_last=choice.finish_reason is not None))
        return b"".join(parts)

    def _first_chunks(self, output: RequestOutput, usage: Usage | None) -> list[bytes]:
        turn = self._turn
        extra: dict[str, object] = {}
        if turn.request.return_token_ids:
            extra["prompt_token_ids"] = output.prompt_token_ids
        if turn.request.return_prompt_text:
            extra["prompt_text"] = output.prompt
        indices = range(len(turn.prepared.sequences))
        deltas = [(index, Delta(role=turn.role, content="")) for index in indices]
        parts = [self._frame.choice(ChatChunkChoice(index=i, delta=delta), usage, extra=extra) for i, delta in deltas]
        if turn.echoed:
            parts += [
                self._frame.choice(ChatChunkChoice(index=index, delta=Delta(content=turn.echoed)), usage)
                for index in indices
            ]
        return parts

    def _choice(self, update: TurnUpdate) -> ChatChunkChoice | None:
        request, output = self._turn.request, update.output
        is_last = update.finish_reason is not None
        shows_tokens = bool(output.token_ids and (request.logprobs or request.return_token_ids))
        delta = delta_of(update.events, self._names)
        if delta == Delta():
            if not (is_last or shows_tokens):
                return None
            if not is_last:
                delta.content = ""
        choice = ChatChunkChoice(index=update.index, delta=delta)
        if request.logprobs and output.token_ids:
            choice.logprobs = make_logprobs(self._turn, output)
        if request.return_token_ids:
            choice.token_ids = output.token_ids
        if is_last:
            choice.finish_reason, choice.stop_reason = update.finish_reason, update.stop_reason
            self.last_reason = update.finish_reason
        return choice
