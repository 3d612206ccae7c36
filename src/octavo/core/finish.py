"""When a text ends, and what is reported of a step.

Owns: the order of the end checks, the accepting of sampled tokens, the making of deltas.
Does not own: freeing what an ended request held (`scheduler.py`); stop strings, which the front end finds.

The rule of `min_tokens`: the i-th output token, counted from 0, may end the text by what it is only if i >= min_tokens.
The sampler masks end and stop tokens before that, and this check ignores them before that, so that either alone keeps
the promise. The length always ends it.

Where a grammar has forced tokens, a result may hold more of them than its frame was to sample, and a later result those
that are known already: tokens are accepted by their positions (docs/decisions/0013).
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.base.errors import InvariantError
from octavo.core.request import Frame, Request
from octavo.proto.failure import Failure
from octavo.proto.output import FinishReason, RequestDelta
from octavo.proto.result import StepResult, TokenLogprobs


class End(NamedTuple):
    """Why a request ends."""

    reason: FinishReason
    stop_reason: int | None = None
    error: Failure | None = None
    is_complete: bool = False
    """No token ended it: its grammar is complete."""


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


def read_end(result: StepResult, idx: int) -> End | None:
    """The end that the runner found behind the tokens of an entry."""
    if idx not in result.ends:
        return None
    error = result.ends[idx]
    return End("stop", is_complete=True) if error is None else End("error", error=error)


def accept_tokens(
    request: Request, frame: Frame, token_ids: list[int], last: End | None = None
) -> tuple[slice, End | None]:
    """Append a frame's tokens one by one up to an end: (which of them are new and accepted, the end if there is one).

    last: the end behind the last of them, where none is found before. Raises InvariantError where a frame cannot have
    yielded these tokens.
    """
    most = 1 + frame.num_drafts if not request.client.sampling.is_constrained else len(token_ids)
    least = 1 if last is None else 0
    if not (least <= len(token_ids) <= most if frame.samples else not token_ids):
        raise InvariantError(f"{request.request_id}: {len(token_ids)} samples for {frame}")
    if not token_ids:
        return slice(0), last
    first = frame.end - frame.num_drafts  # of their positions
    num_known = len(request.token_ids) - first
    if num_known < 0 or token_ids[:num_known] != request.token_ids[first : first + len(token_ids)]:
        raise InvariantError(f"{request.request_id}: tokens at {first} that contradict the {num_known} known there")
    for idx in range(num_known, len(token_ids)):
        request.token_ids.append(token_ids[idx])
        end = find_end(request)
        if end is not None:
            return slice(num_known, idx + 1), end
    return slice(num_known, len(token_ids)), last


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
    reason, stop_reason, error, is_complete = end or (None, None, None, False)
    return RequestDelta(
        request_id=request.request_id,
        epoch=client.epoch,
        token_ids=token_ids,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        finish_reason=reason,
        stop_reason=stop_reason,
        is_complete=is_complete,
        num_cached_tokens=request.num_cached_tokens or 0,
        error=error,
        scheduled_s=scheduled_s,
        client_idx=client.client_idx,
    )
