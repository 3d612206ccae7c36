"""A checked completion request, and its answer as a stream.

Owns: what must be remembered of each text between two chunks.   Does not own: events (sse.py), checks (completions.py).
Invariant: the chunks joined are the answer without streaming.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from octavo.engine.input.processor import PreparedRequest
from octavo.outputs import CompletionOutput, PositionLogprobs, RequestOutput
from octavo.server.api.completion_types import CompletionChunkChoice, CompletionRequest
from octavo.server.api.logprobs import CompletionLogprobs, TokenNames, completion_logprobs
from octavo.server.api.usage import UsageMeter
from octavo.server.chunk_stream import make_frame, send_chunks
from octavo.server.exchange import Exchange
from octavo.server.intervals import ChunkGate
from octavo.server.requests import StreamSettings
from octavo.server.running import follow
from octavo.server.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCall:
    """A checked request, ready to run."""

    request: CompletionRequest
    id: str
    model: str
    prepared: list[PreparedRequest]
    echoed: list[str]
    """Text of each prompt; empty without echo."""
    scores_only: bool
    """max_tokens=0 with echo: the one token that is generated is not shown."""
    names: TokenNames
    n: int


def make_meter(service: Service, call: CompletionCall) -> UsageMeter:
    """For the usage of this request."""
    return UsageMeter(reports_cached=service.config.enable_prompt_tokens_details, counts_output=not call.scores_only)


async def stream_completion(exchange: Exchange, service: Service, call: CompletionCall) -> None:
    """Answer. Raises what happens before the first chunk; what happens later ends the stream with an error."""
    settings = StreamSettings.of(call.request, service)
    frame = make_frame(service, id=call.id, kind="text_completion", model=call.model)
    meter, maker = make_meter(service, call), _ChunkMaker(call, settings.interval)

    async def chunks() -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(follow(service.engine, call.prepared)) as outputs:
            async for prompt_idx, output in outputs:
                meter.add(prompt_idx, output)
                usage = meter.usage() if settings.has_usage_in_chunks else None
                choices = maker.choices(prompt_idx, output)
                yield b"".join(frame.choice(c, usage, is_last=c.finish_reason is not None) for c in choices)
        exchange.notes["finish_reason"] = maker.last_reason

    await send_chunks(exchange, frame, settings, meter, chunks())


class _ChunkMaker:
    """Choices of chunks, and what must be remembered of each text between two of them."""

    def __init__(self, call: CompletionCall, interval: int) -> None:
        self._call = call
        num_choices = len(call.prepared) * call.n
        self._gates = [ChunkGate(interval) for _ in range(num_choices)]
        self._offsets = [0] * num_choices
        self._is_begun = [False] * num_choices
        self._prompt_positions: dict[int, list[PositionLogprobs | None]] = {}
        self.last_reason: str | None = None

    def choices(self, prompt_idx: int, output: RequestOutput) -> list[CompletionChunkChoice]:
        """Those due after this output."""
        if output.prompt_logprobs is not None:
            self._prompt_positions.setdefault(prompt_idx, []).extend(output.prompt_logprobs)
        made = []
        for continuation in output.outputs:
            index = prompt_idx * self._call.n + continuation.index
            due = self._gates[index].pass_through(continuation)
            if due is not None:
                choice = self._choice(prompt_idx, index, output, due)
                if choice is not None:
                    made.append(choice)
        return made

    def _choice(
        self, prompt_idx: int, index: int, output: RequestOutput, due: CompletionOutput
    ) -> CompletionChunkChoice | None:
        call, request = self._call, self._call.request
        text, token_ids, positions = due.text, due.token_ids, due.logprobs or []
        is_first = not self._is_begun[index]
        if is_first and not token_ids and not due.finished():
            return None  # the prompt is being computed
        self._is_begun[index] = True
        if call.scores_only:
            text, token_ids, positions = "", [], []
        logprobs: CompletionLogprobs | None = None
        if request.logprobs is not None:
            ids: Sequence[int] = token_ids
            with_prompt: Sequence[PositionLogprobs | None] = positions
            if is_first and request.echo:
                ids = [*output.prompt_token_ids, *token_ids]
                with_prompt = [*self._prompt_positions.get(prompt_idx, []), *positions]
            logprobs, self._offsets[index] = completion_logprobs(
                ids, with_prompt, call.names, offset=self._offsets[index]
            )
        if is_first and request.echo:
            text = call.echoed[prompt_idx] + text
        if not (text or is_first or due.finished() or logprobs is not None or request.return_token_ids):
            return None
        choice = CompletionChunkChoice(index=index, text=text, logprobs=logprobs)
        if request.return_token_ids:
            choice.token_ids = token_ids
            if is_first:
                choice.prompt_token_ids = output.prompt_token_ids
        if due.finished():
            self.last_reason = choice.finish_reason = "length" if call.scores_only else due.finish_reason
            choice.stop_reason = None if call.scores_only else due.stop_reason
        return choice
