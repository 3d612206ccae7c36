"""What a request must be to be taken in at all, memory aside.

Owns: the checks and their messages. Does not own: whether it fits into the KV pool (`KvManager.check_fits`).
"""

from __future__ import annotations

from octavo.base.errors import ValidationError
from octavo.core.budget import SchedulerLimits
from octavo.proto.request import NewRequest


def check_request(request: NewRequest, limits: SchedulerLimits, *, is_id_taken: bool) -> None:
    """Raise ValidationError naming what is wrong with a request, its value and the remedy."""
    num_prompt_tokens = len(request.prompt_token_ids)
    if is_id_taken:
        raise ValidationError(
            f"request_id={request.request_id!r} is in use by a request that has not ended; choose another",
            parameter="request_id",
            value=request.request_id,
        )
    if num_prompt_tokens == 0:
        raise ValidationError(
            "prompt_token_ids is empty; give at least one token", parameter="prompt_token_ids", value=[]
        )
    if num_prompt_tokens >= limits.max_model_len:
        raise ValidationError(
            f"the prompt has {num_prompt_tokens} tokens; shorten it to at most {limits.max_model_len - 1}: "
            f"max_model_len={limits.max_model_len} less one token of output",
            parameter="prompt_token_ids",
            value=num_prompt_tokens,
        )
    if request.max_tokens < 1:
        raise ValidationError(
            f"max_tokens={request.max_tokens} must be at least 1", parameter="max_tokens", value=request.max_tokens
        )
