"""SamplingParams: how to choose tokens, with vLLM's names, defaults and meaning.

Values are checked once, when the object is made; checks that need the model (ids in the vocabulary, context length)
happen in `engine/inputs.py`.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


GREEDY_EPSILON = 1e-5
"""Temperatures below this mean greedy."""
MIN_TEMPERATURE = 0.01
"""Positive temperatures below this are raised to it."""
MAX_SEQUENCES = 16384
MAX_TOKEN_IDS = 1024
MAX_LOGPROB_TOKEN_IDS = 128


class RequestOutputKind(IntEnum):
    """What each output of a stream carries."""

    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling of one request. Raises ValidationError naming the field that is wrong.

    seed=-1 means None. logprobs=-1 means the whole vocabulary. top_k 0 or -1 means all tokens.
    """

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] | str | None = None
    stop_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    skip_reading_prefix_cache: bool | None = None

    @property
    def is_greedy(self) -> bool:
        """True: arg max, no noise."""
        return self.temperature < GREEDY_EPSILON
