"""The one place where a request is checked against the model.

Owns: ids within the vocabulary, lengths within the context, limits of the engine.
Does not own: the values of SamplingParams by themselves (proto/sampling.py checks those when they are made).
Every error names the parameter, the value and the limit; nothing reaches the engine before all checks have passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from octavo.base.errors import ValidationError
from octavo.proto.sampling import SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What the model and the engine allow."""

    vocab_size: int
    """Width of the logits."""
    max_model_len: int
    """Prompt and output together, in tokens."""
    max_logprobs: int
    """Logprobs per token at most; -1: no limit."""


def check_prompt_ids(token_ids: Sequence[int], limits: RequestLimits) -> None:
    """Non-empty, whole numbers, in the vocabulary."""
    if not token_ids:
        raise ValidationError("prompt has no tokens: give at least one", parameter="prompt", value=[])
    _check_ids("prompt_token_ids", token_ids, limits.vocab_size)


def check_sampling(params: SamplingParams, limits: RequestLimits) -> None:
    """Token ids in the vocabulary, logprobs within the engine's limit, a budget only with what it needs."""
    for name, ids in (
        ("stop_token_ids", params.stop_token_ids),
        ("allowed_token_ids", params.allowed_token_ids),
        ("logprob_token_ids", params.logprob_token_ids),
        ("logit_bias", params.logit_bias),
        ("structured_after", params.structured_after),
        ("thinking_start_token_ids", params.thinking_start_token_ids),
        ("thinking_end_token_ids", params.thinking_end_token_ids),
    ):
        if ids is not None:
            _check_ids(name, ids, limits.vocab_size)
    for name, num in (("logprobs", params.logprobs), ("prompt_logprobs", params.prompt_logprobs)):
        _check_num_logprobs(name, num, limits)
    if params.thinking_token_budget is not None and params.thinking_end_token_ids is None:
        raise ValidationError(
            "thinking_token_budget: this request has no marker that ends reasoning; give thinking_end_token_ids",
            parameter="thinking_token_budget",
            value=params.thinking_token_budget,
        )


def fit_max_tokens(
    num_prompt_tokens: int, max_tokens: int | None, limits: RequestLimits, *, is_strict: bool = False
) -> int:
    """Output tokens that will be generated at most; None means the rest of the context.

    A prompt that leaves no room is an error. A max_tokens that leaves the context is cut, or with is_strict refused.
    """
    room = limits.max_model_len - num_prompt_tokens
    wanted = room if max_tokens is None else max_tokens
    if room < 1 or (is_strict and wanted > room):
        num_output = max(1, wanted)
        raise ValidationError(
            f"This model's maximum context length is {limits.max_model_len} tokens. However, you requested "
            f"{num_output} output tokens and your prompt contains {num_prompt_tokens} input tokens, "
            f"{num_prompt_tokens + num_output} tokens in total. Shorten the prompt, or ask for fewer output tokens.",
            parameter="input_tokens",
            value=num_prompt_tokens,
        )
    return min(wanted, room)


def _check_ids(name: str, ids: Collection[int], vocab_size: int) -> None:
    # Long prompts are the rule and bad ids the exception: three passes in C before one in Python.
    if not ids or (set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) < vocab_size):
        return
    for index, token_id in enumerate(ids):
        if type(token_id) is not int or not 0 <= token_id < vocab_size:
            raise ValidationError(
                f"{name}[{index}]={token_id!r}: token ids are whole numbers from 0 to {vocab_size - 1}",
                parameter=name,
                value=token_id,
            )


def _check_num_logprobs(name: str, num: int | None, limits: RequestLimits) -> None:
    if num is None or limits.max_logprobs == -1:
        return
    wanted = limits.vocab_size if num == -1 else num
    if wanted > limits.max_logprobs:
        raise ValidationError(
            f"{name}={num}: at most {limits.max_logprobs} here; raise --max-logprobs for more",
            parameter=name,
            value=num,
        )
