"""Fields that completions and chat completions share, and those of either API that are known but not done.

Types are strict: a number in quotes or a boolean for a number is an error that names the field. None is "not given".
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class StreamOptions(msgspec.Struct, kw_only=True):
    """What a stream holds beside text."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class UnsupportedFields(msgspec.Struct, kw_only=True):
    """Constraints that this release cannot honour: a request that sets one is refused, never answered without it."""

    best_of: Any = None
    use_beam_search: Any = None
    length_penalty: Any = None
    early_stopping: Any = None
    repetition_detection: Any = None
    logits_processors: Any = None
    kv_transfer_params: Any = None
    vllm_xargs: Any = None


class ConstraintFields(UnsupportedFields, kw_only=True):
    """What form the text must have: at most one of these says so. The guided_* are old names, from before 2026."""

    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    guided_json: str | dict[str, Any] | bool | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    guided_json_object: bool | None = None
    guided_decoding_backend: str | None = None
    guided_whitespace_pattern: str | None = None


class SamplingFields(ConstraintFields, kw_only=True):
    """How tokens are chosen, when a text ends, what is reported, who asks."""

    model: str | None = None
    n: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    logit_bias: dict[str, float] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    truncate_prompt_tokens: int | None = None
    truncation_side: Literal["left", "right"] | None = None
    echo: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stream_interval: int | None = None
    priority: int | None = None
    request_id: str | None = None
    cache_salt: str | None = None
    thinking_token_budget: int | None = None
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool | None = None
    add_special_tokens: bool | None = None
