"""When a text ends, and what is reported of a step.

Owns: the order of the end checks, the accepting of sampled tokens, the making of deltas.
Does not own: freeing what an ended request held (`scheduler.py`); stop strings, which the front end finds.

The rule of `min_tokens`: the i-th output token, counted from 0, may end the text by what it is only if i >= min_tokens.
The sampler masks end and stop tokens before that, and this check ignores them before that, so that either alone keeps
the promise. The length always ends it.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.base.errors import InvariantError
from octavo.core.request import Frame, Request
from octavo.proto.output import FinishReason, RequestDelta
from octavo.proto.result import TokenLogprobs


class End(NamedTuple):
    """Why a request ends."""

    reason: FinishReason
    stop_reason: int | None = None
    error: str | None = None


def find_end(request: Request) -> End | None:
    """Whether the last known token ends the text: end of sequence, then stop token, then length; None if it goes on."""
    num_tokens = len(request.token_ids)
    if request.stop_ids:
        token_id = request.token_ids[-1]
        client = request.client
        if token_id in request.stop_ids and num_tokens - request.num_prompt_tokens > client.sampling.min_tokens:
            return End("stop", None if token_id in client.eos_token_ids else token_id)
    if num_tokens >= request.max_total_tokens:
        return End("length")
    return None


def accept_tokens(request: Request, frame: Frame, token_ids: list[int]) -> tuple[int, End | None]:
    """Append a frame's samples one by one up to an end: (how many were accepted, the end if one was found).

    Raises InvariantError where the number of samples is not what the frame can yield.
    """
    if not (1 <= len(token_ids) <= 1 + frame.num_drafts if frame.samples else not token_ids):
        raise InvariantError(f"{request.request_id}: {len(token_ids)} samples for {frame}")
    for idx, token_id in enumerate(token_ids):
        request.token_ids.append(token_id)
        end = find_end(request)
        if end is not None:
            return idx + 1, end
    return len(token_ids), None


def accept_prompt_logprobs(request: Request, frame: Frame, logprobs: list[TokenLogprobs]) -> list[TokenLogprobs]:
    """The entries not handed on before; counts them as handed on.

    `logprobs` ends with the frame's last prompt position, wherever it starts.
    """
    last = min(frame.end, request.num_prompt_tokens - 1)
    num_new = last - request.num_prompt_logprobs
    if num_new <= 0:
        return []
    if num_new > len(logprobs):
        raise InvariantError(f"{request.request_id}: {len(logprobs)} prompt logprobs where {num_new} are new")
    request.num_prompt_logprobs = last
    return logprobs[-num_new:]


def make_delta(
    request: Request,
    *,
    token_ids: list[int],
    logprobs: list[TokenLogprobs],
    prompt_logprobs: list[TokenLogprobs],
    end: End | None,
) -> RequestDelta:
    """The report of one step or of an end; marks the request as announced."""
    scheduled_s = None if request.is_announced else request.scheduled_s
    request.is_announced = True
    client = request.client
    reason, stop_reason, error = end or (None, None, None)
    return RequestDelta(
        request_id=request.request_id,
        epoch=client.epoch,
        token_ids=token_ids,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        finish_reason=reason,
        stop_reason=stop_reason,
        num_cached_tokens=request.num_cached_tokens or 0,
        error=error,
        scheduled_s=scheduled_s,
        client_idx=client.client_idx,
    )
