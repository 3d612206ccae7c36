"""What a caller gets back: RequestOutput and its parts, with vLLM's names and shapes.

Owns: the public result types.   Does not own: how they are filled (engine/output/processor.py).
Invariants: `outputs[i].index == i`; `len(logprobs) == len(token_ids)` where logprobs were asked for;
`cumulative_logprob` is None exactly where `logprobs` is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.proto.failure import FailureKind
from octavo.proto.output import FinishReason


@dataclass(frozen=True, slots=True)
class Logprob:
    """Log-probability of one token at one position, of the raw logits."""

    logprob: float
    rank: int | None = None
    """1 is the most probable token of the whole vocabulary."""
    decoded_token: str | None = None
    """The token's own text; None when the output is not detokenized."""


PositionLogprobs = dict[int, Logprob]
"""token id -> its logprob at one position; the sampled (or prompt) token is always among them."""


@dataclass(slots=True, kw_only=True)
class RequestMetrics:
    """When things happened, in seconds on the engine's monotonic clock; None: not yet."""

    arrival_time: float
    first_scheduled_time: float | None = None
    first_token_time: float | None = None
    last_token_time: float | None = None
    finished_time: float | None = None

    @property
    def time_to_first_token_s(self) -> float | None:
        """TTFT: from arrival to the first token of any of the request's sequences."""
        return None if self.first_token_time is None else self.first_token_time - self.arrival_time

    @property
    def latency_s(self) -> float | None:
        """From arrival to the end of the last sequence."""
        return None if self.finished_time is None else self.finished_time - self.arrival_time


@dataclass(slots=True, kw_only=True)
class CompletionOutput:
    """One of the n continuations of a prompt.

    With output_kind DELTA, text, token_ids and logprobs are those since the previous output; else all so far.
    """

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    """Sum of the sampled tokens' logprobs so far, whatever the output_kind."""
    logprobs: list[PositionLogprobs] | None = None
    finish_reason: FinishReason | None = None
    """stop: end-of-sequence token, stop token or stop string; length; abort; error."""
    stop_reason: int | str | None = None
    """The stop string or stop token id; None for the model's own end-of-sequence token."""
    error: str | None = None
    """With finish_reason "error": what happened. Not fit for others than who runs the engine where error_kind is
    "internal"."""
    error_kind: FailureKind | None = None
    """Whose fault: see proto/failure.py."""

    def finished(self) -> bool:
        """True once no more text will come."""
        return self.finish_reason is not None


@dataclass(slots=True, kw_only=True)
class RequestOutput:
    """Everything known about one request; the n continuations are in `outputs`."""

    request_id: str
    prompt: str | None
    """The prompt's text; None when it was given as token ids."""
    prompt_token_ids: list[int]
    prompt_logprobs: list[PositionLogprobs | None] | None = None
    """One entry a prompt token; the first is None, nothing precedes it. None: not asked for."""
    outputs: list[CompletionOutput] = field(default_factory=list)
    finished: bool = False
    metrics: RequestMetrics | None = None
    num_cached_tokens: int | None = None
    """Prompt tokens that came from the prefix cache; None until the request was scheduled."""
