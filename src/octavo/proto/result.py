"""StepResult: what a step produced, from the runner to the scheduler. Lists are parallel to `StepPlan.rows`."""

from __future__ import annotations

import msgspec

from octavo.proto.failure import Failure


class TokenLogprobs(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Logprobs of one position: the sampled (or prompt) token first, then the top k, best first."""

    token_ids: list[int]
    logprobs: list[float]
    ranks: list[int]
    """1 is the most probable token; counted over the whole vocabulary."""


class StepTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds spent, and what a perfect machine would have had to move and multiply."""

    batch_s: float = 0.0
    forward_s: float = 0.0
    sample_s: float = 0.0
    planned_bytes: int = 0
    planned_flops: int = 0


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one StepPlan."""

    step_id: int
    epoch: int
    token_ids: list[list[int]]
    """Per plan entry, tokens from the position that it samples on: the sampled one, then those that a grammar leaves no
    choice about. Empty where the entry does not sample, failed, or `ends` without a token."""
    logprobs: dict[int, list[TokenLogprobs]] = {}
    """Entry index -> one TokenLogprobs a sampled token, for requests that asked."""
    prompt_logprobs: dict[int, list[TokenLogprobs]] = {}
    """Entry index -> logprobs of the prompt tokens at positions starts+1 .. of this chunk, for requests that asked."""
    failed: dict[int, Failure] = {}
    """Entry index -> what went wrong with this sequence alone; what it was to write into the cache is void. numeric: a
    value that is not finite; request: it contradicts its own constraint; internal: it could not be computed."""
    ends: dict[int, Failure | None] = {}
    """Entry index -> its text ends behind these tokens, whatever they are. None: its grammar is complete and no end
    token can be written. Else: why no token may follow."""
    timings: StepTimings = StepTimings()
