"""What goes from a front end to an engine."""

from __future__ import annotations

import msgspec

from octavo.proto.sampling import SamplingParams


class NewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sequence to continue. `n > 1` has been fanned out into n of these before.

    All choices that need the tokenizer or the model's defaults are already made: `sampling.max_tokens`, `.seed` and
    `.stop_token_ids` are final, stop strings stay with the front end.
    """

    request_id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    max_tokens: int
    """Output tokens at most, already capped by the context length."""
    seed: int
    """Noise key of this sequence, 64 bits. Unused when greedy."""
    eos_token_ids: tuple[int, ...] = ()
    """Tokens that end the output with no stop reason; empty under ignore_eos."""
    output_token_ids: list[int] = []
    """Replay: output that was already received; counts as output everywhere."""
    epoch: int = 0
    """The front end's attempt; answers carry it back."""
    arrival_s: float = 0.0
    deadline_s: float | None = None
    """On the engine's clock; past it the request ends with an error."""
    priority: int = 0
    """Small is important."""
    cache_salt: str | None = None
    client_idx: int = 0
