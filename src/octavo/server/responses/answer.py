"""One answer as it grows: the parameters it repeats, its items, its end.

Owns: the response object in each of its states.   Does not own: items (builder.py), sending.
"""

from __future__ import annotations

from msgspec import structs

from octavo.server.api.usage import Usage
from octavo.server.chat_message import make_logprobs
from octavo.server.errors import ApiError
from octavo.server.responses.builder import AnswerBuilder
from octavo.server.responses.items import (
    IncompleteDetails,
    InputTokensDetails,
    OutputTokensDetails,
    ReasoningConfig,
    Response,
    ResponseFault,
    ResponseUsage,
    TextConfig,
)
from octavo.server.responses.request import ResponsesRequest, TextOptions
from octavo.server.responses.writers import Emit
from octavo.server.turn import Turn, TurnUpdate


class Answer:
    """Of one request, streamed or not: all that is said of it comes from here."""

    def __init__(self, request: ResponsesRequest, turn: Turn, emit: Emit, now_s: int) -> None:
        self.begun = _begun(request, turn, now_s)
        """In progress, without items."""
        self.finish_reason: str | None = None
        self._turn = turn
        self._builder = AnswerBuilder(emit)

    def take(self, update: TurnUpdate) -> None:
        """What is new."""
        logprobs = make_logprobs(self._turn, update.output)
        self._builder.take(update.events, logprobs.content if logprobs is not None else ())
        if update.finish_reason is not None:
            self.finish_reason = update.finish_reason
            self._builder.finish(is_cut=self._is_cut)

    def end(self, now_s: int) -> Response:
        """As it is answered."""
        return structs.replace(
            self.begun,
            status="incomplete" if self._is_cut else "completed",
            incomplete_details=IncompleteDetails() if self._is_cut else None,
            completed_at=None if self._is_cut else now_s,
            output=self._builder.items,
            usage=_usage(self._turn.meter.usage()),
        )

    def fail(self, error: ApiError) -> Response:
        """With the items that had ended."""
        return structs.replace(
            self.begun, status="failed", output=self._builder.items, error=ResponseFault(message=error.message)
        )

    @property
    def _is_cut(self) -> bool:
        return self.finish_reason == "length"


def _begun(request: ResponsesRequest, turn: Turn, now_s: int) -> Response:
    text, sampling = request.text or TextOptions(), turn.prepared.sampling
    return Response(
        id=turn.request_id if turn.request_id.startswith("resp_") else f"resp_{turn.request_id}",
        created_at=now_s,
        model=turn.model,
        instructions=request.instructions,
        metadata=request.metadata or {},
        max_output_tokens=request.max_output_tokens,
        max_tool_calls=request.max_tool_calls,
        tools=request.tools or [],
        tool_choice="auto" if request.tool_choice is None else request.tool_choice,
        parallel_tool_calls=request.parallel_tool_calls is not False,
        text=TextConfig(format=text.format or {"type": "text"}, verbosity=text.verbosity),
        reasoning=ReasoningConfig(effort=request.reasoning.effort if request.reasoning else None),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_logprobs=request.top_logprobs or 0,
        truncation=request.truncation or "disabled",
        service_tier=None if request.service_tier is None else "default",
        user=request.user,
        safety_identifier=request.safety_identifier,
        prompt_cache_key=request.prompt_cache_key,
    )


def _usage(usage: Usage) -> ResponseUsage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=prompt.cached_tokens if prompt else 0),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=completion.reasoning_tokens if completion else 0),
        total_tokens=usage.total_tokens,
    )
