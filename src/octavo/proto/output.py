"""What goes from an engine to a front end: per request, the difference since the last time."""

from __future__ import annotations

from typing import Literal

import msgspec

from octavo.proto.failure import Failure
from octavo.proto.result import TokenLogprobs

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


class RequestDelta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New tokens of one request, and its end if it ended. Exactly one delta of a request has a finish_reason."""

    request_id: str
    epoch: int
    token_ids: list[int] = []
    logprobs: list[TokenLogprobs] = []
    """Parallel to token_ids where the request asked for logprobs."""
    prompt_logprobs: list[TokenLogprobs] = []
    """The next prompt positions' logprobs, from position 1 on."""
    finish_reason: FinishReason | None = None
    stop_reason: int | None = None
    """The stop token id, when one of stop_token_ids ended the text. Stop strings are found by the front end."""
    is_complete: bool = False
    """With finish_reason "stop": no token ended the text, its grammar is complete; the last token belongs to it."""
    num_cached_tokens: int = 0
    """Prompt tokens not computed, thanks to the prefix cache, at first admission."""
    error: Failure | None = None
    """With finish_reason "error": what happened."""
    scheduled_s: float | None = None
    """On the request's first delta: when it was first scheduled, on the engine's clock."""
    client_idx: int = 0
