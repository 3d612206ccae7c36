"""SamplingParams: how to choose tokens, with vLLM's names, defaults and meaning.

Owns: the fields and what is derived from them.
Does not own: the checks of single values (`sampling_checks.py`), the names of vLLM that are refused
(`sampling_names.py`), and checks that need the model (ids in the vocabulary, context length: `engine/input`).
Invariants: values are checked and brought into one form when the object is made, also when it is decoded.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Self

import msgspec

from octavo.base.log import get_logger
from octavo.proto.sampling_checks import (
    GREEDY_EPSILON,
    MAX_LOGPROB_TOKEN_IDS,
    MAX_SEQUENCES,
    MAX_TOKEN_IDS,
    MIN_TEMPERATURE,
    NORMALISERS,
    check_together,
    refuse,
)
from octavo.proto.sampling_names import CheckedNames
from octavo.proto.structured import PreparedGrammar, StructuredOutputsParams, as_structured_outputs

__all__ = [
    "GREEDY_EPSILON",
    "MAX_LOGPROB_TOKEN_IDS",
    "MAX_SEQUENCES",
    "MAX_TOKEN_IDS",
    "MIN_TEMPERATURE",
    "RequestOutputKind",
    "SamplingParams",
    "StructuredOutputsParams",
]

logger = get_logger(__name__)


class RequestOutputKind(IntEnum):
    """What each output of a stream carries."""

    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


class SamplingParams(
    msgspec.Struct, metaclass=CheckedNames, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Sampling of one request. Raises ValidationError naming the field that is wrong.

    n: texts to make from the prompt. temperature: 0 is greedy; below MIN_TEMPERATURE it is raised to that.
    top_k: 0 or -1 means all tokens. min_p: relative to the most probable token. seed: -1 means None.
    presence_penalty, frequency_penalty: over the output; repetition_penalty: over prompt and output.
    max_tokens: None means up to the context's end. min_tokens: until then neither an end of text nor a stop token.
    logprobs, prompt_logprobs: how many of the best tokens to report beside the one taken; -1 is the whole vocabulary.
    logprob_token_ids: report these in place of the best. logit_bias: clamped to +-100.
    bad_words: never written; a word that begins in the prompt is not looked for.
    structured_outputs: the form the text must have; it ends by itself where the form is complete.
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
    """Kept as a list; see `stop_strings`."""
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
    structured_outputs: StructuredOutputsParams | None = None
    """May be given as a mapping of its fields."""
    thinking_token_budget: int | None = None
    """Tokens of reasoning at most; -1 means None. Needs `thinking_end_token_ids`."""
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    skip_reading_prefix_cache: bool | None = None
    """None: where prompt_logprobs are asked for; see `reads_prefix_cache`."""
    bad_words_token_ids: list[list[int]] | None = None
    """Internal: the token forms of `bad_words`, made by the front end."""
    prepared_grammar: PreparedGrammar | None = None
    """Internal: what `structured_outputs` become, which an engine is not told of."""
    structured_after: list[int] | None = None
    """Internal: the constraint begins behind these tokens of the output (the end of reasoning). None: at once."""
    thinking_start_token_ids: list[int] | None = None
    """Internal: reasoning begins behind these tokens of the output. None: with the output."""
    thinking_end_token_ids: list[int] | None = None
    """Internal: these tokens end reasoning; they are forced once its budget is spent."""

    def __post_init__(self) -> None:
        for name, normalise in NORMALISERS.items():
            self._keep(name, normalise(name, getattr(self, name)), warn=name == "temperature")
        self._keep("output_kind", _as_output_kind(self.output_kind))
        if self.structured_outputs is not None:
            self._keep("structured_outputs", as_structured_outputs("structured_outputs", self.structured_outputs))
        if self.is_greedy:
            for name, value in (("top_p", 1.0), ("top_k", 0), ("min_p", 0.0)):
                self._keep(name, value)
        check_together(self)

    def _keep(self, name: str, value: object, *, warn: bool = False) -> None:
        """Put a field into its normal form while the object is being made."""
        given = getattr(self, name)
        if value is given:
            return
        if warn and given != value and value == MIN_TEMPERATURE:
            logger.warning("%s=%g is raised to %g: smaller ones overflow", name, given, MIN_TEMPERATURE)
        msgspec.structs.force_setattr(self, name, value)

    @classmethod
    def from_optional(cls, **values: Any) -> Self:
        """Make one from values of which None means "not given": the default then holds.

        But max_tokens=None is a value of its own: up to the context's end.
        """
        return cls(**{name: value for name, value in values.items() if value is not None or name == "max_tokens"})

    def clone(self, **changes: Any) -> Self:
        """A checked copy with some fields changed. Raises ValidationError."""
        return type(self)(**({name: getattr(self, name) for name in self.__struct_fields__} | changes))

    @property
    def is_greedy(self) -> bool:
        """True: arg max, no noise."""
        return self.temperature < GREEDY_EPSILON

    @property
    def stop_strings(self) -> list[str]:
        """`stop` as a list, empty if there are none."""
        return self.stop if isinstance(self.stop, list) else []

    @property
    def all_stop_token_ids(self) -> frozenset[int]:
        """The tokens that end the text with a stop reason. The model's own ends are not among them."""
        return frozenset(self.stop_token_ids or ())

    @property
    def reads_prefix_cache(self) -> bool:
        """False: every prompt position is to be computed. Always so with prompt logprobs."""
        return not self.skip_reading_prefix_cache and self.prompt_logprobs is None

    @property
    def has_penalties(self) -> bool:
        """True: the choice of a token depends on the tokens before it beyond the model's own logits."""
        return self.repetition_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0

    @property
    def is_constrained(self) -> bool:
        """True: a grammar or a budget of reasoning says which tokens may come."""
        return (
            self.structured_outputs is not None
            or self.prepared_grammar is not None
            or self.thinking_token_budget is not None
        )

    @property
    def wants_logprobs(self) -> bool:
        """True: each output token carries logprobs."""
        return self.logprobs is not None or self.logprob_token_ids is not None


def _as_output_kind(value: object) -> RequestOutputKind:
    try:
        if isinstance(value, bool):
            raise ValueError
        return RequestOutputKind(value)  # type: ignore[arg-type]
    except ValueError:
        refuse("output_kind", value, "must be 0 (cumulative), 1 (delta) or 2 (final only)")
