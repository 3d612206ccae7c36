"""From a prompt and sampling parameters to the NewRequests an engine takes.

Owns: defaults, validation in one pass, end tokens, bad words as ids, seeds, the fan-out of n > 1.
Does not own: prompt forms and templates (prompts.py), the checks themselves (validate.py).
Invariant: `prepare` either returns a request that is final or raises; it changes nothing but the count of requests
that came without a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from octavo.base.errors import InvariantError, ValidationError
from octavo.engine.input.defaults import EndTokens, apply_constraint_defaults, apply_end_tokens
from octavo.engine.input.prompts import (
    ChatMessage,
    ChatOptions,
    Prompt,
    PromptTokenizer,
    PromptType,
    SealedChat,
    read_prompt,
    render_chat,
)
from octavo.engine.input.seeds import derive_child_seed, derive_request_seed
from octavo.engine.input.validate import RequestLimits, check_prompt_ids, check_sampling, fit_max_tokens
from octavo.proto.request import NewRequest
from octavo.proto.sampling import SamplingParams
from octavo.proto.structured import GrammarSpec, PreparedGrammar, StructuredOutputsParams

PrepareGrammar = Callable[[GrammarSpec], PreparedGrammar]
"""Raises ValidationError for a grammar that cannot be compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A checked request: what was asked, and one NewRequest for each of its n sequences."""

    request_id: str
    prompt: Prompt
    sampling: SamplingParams
    """As the caller gave it, or the model's defaults."""
    sequences: list[NewRequest]

    @property
    def arrival_s(self) -> float:
        """When the request came, on the engine's clock."""
        return self.sequences[0].arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDefaults:
    """What the model decides where the caller does not."""

    sampling: SamplingParams
    end_tokens: EndTokens
    max_tokens: int | None = None
    """The model's cap on output tokens, if it has one."""
    chat_template: str | None = None
    """The engine's, in place of the one in the model's files."""
    constraint_switches: Mapping[str, object] = field(default_factory=dict)
    """Of --structured-outputs-config."""


class InputProcessor:
    """Prompts in, checked requests out. One per engine; not thread-safe."""

    def __init__(
        self,
        tokenizer: PromptTokenizer | None,
        limits: RequestLimits,
        defaults: ModelDefaults,
        *,
        engine_seed: int,
        prepare_grammar: PrepareGrammar | None = None,
    ) -> None:
        """prepare_grammar: None: the caller prepares the grammars."""
        self._tokenizer = tokenizer
        self._limits = limits
        self._defaults = defaults
        self._engine_seed = engine_seed
        self._prepare_grammar = prepare_grammar
        self._num_unseeded = 0

    @property
    def limits(self) -> RequestLimits:
        """What a request must keep to."""
        return self._limits

    @property
    def default_sampling_params(self) -> SamplingParams:
        """What applies to a request without sampling parameters."""
        return self._defaults.sampling

    @property
    def default_max_tokens(self) -> int | None:
        """The model's own cap on output tokens; None: it has none."""
        return self._defaults.max_tokens

    def read(self, prompt: PromptType, *, add_special_tokens: bool = True) -> Prompt:
        """Any form of prompt as token ids. Raises ValidationError."""
        return read_prompt(prompt, self._tokenizer, add_special_tokens=add_special_tokens)

    def render_chat(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, add_special_tokens: bool = False
    ) -> Prompt:
        """A conversation as token ids. Raises ValidationError."""
        if options.chat_template is None and self._defaults.chat_template is not None:
            options = replace(options, chat_template=self._defaults.chat_template)
        return render_chat(messages, self._tokenizer, options, add_special_tokens=add_special_tokens)

    def tokenize_rendered(self, chat: SealedChat, text: str, *, add_special_tokens: bool = False) -> Prompt:
        """The prompt of a conversation that was rendered elsewhere. Raises ValidationError."""
        assert self._tokenizer is not None
        return chat.tokenize(text, self._tokenizer, add_special_tokens=add_special_tokens)

    def constraint_of(self, sampling: SamplingParams | None) -> GrammarSpec | None:
        """The grammar that a request with these parameters needs; None: none."""
        constraint = self._with_defaults(sampling).structured_outputs
        return None if constraint is None else constraint.spec

    def prepare_grammar(self, constraint: StructuredOutputsParams) -> PreparedGrammar:
        """Here and now. Raises ValidationError."""
        if self._prepare_grammar is None:
            raise InvariantError("nobody prepared the grammar of this request")
        return self._prepare_grammar(constraint.spec)

    def prepare(
        self,
        prompt: Prompt,
        sampling: SamplingParams | None,
        *,
        request_id: str,
        arrival_s: float,
        priority: int = 0,
        deadline_s: float | None = None,
        default_seed: int | None = None,
        is_strict: bool = False,
        grammar: PreparedGrammar | None = None,
    ) -> PreparedRequest:
        """Check everything and fan out. Raises ValidationError; see fit_max_tokens for is_strict.

        arrival_s, deadline_s: on the engine's clock. default_seed: where the parameters have none, in place of one
        derived from the engine's seed and the number of requests before; with it, any thread may call. grammar: what
        the constraint becomes (see `constraint_of`), where it is known already.
        """
        params = self._with_defaults(sampling)
        check_prompt_ids(prompt.token_ids, self._limits)
        check_sampling(params, self._limits)
        if params.structured_outputs is not None and grammar is None:
            grammar = self.prepare_grammar(params.structured_outputs)
        max_tokens = fit_max_tokens(len(prompt.token_ids), params.max_tokens, self._limits, is_strict=is_strict)
        final, eos = self._finalize(params, max_tokens, grammar)
        seed = default_seed if params.seed is None else params.seed
        if seed is None:
            seed = derive_request_seed(self._engine_seed, self._num_unseeded)
            self._num_unseeded += 1
        sequences = [
            NewRequest(
                request_id=request_id if params.n == 1 else f"{index}_{request_id}",
                prompt_token_ids=prompt.token_ids,
                sampling=final if index == 0 else _without_prompt_logprobs(final),
                max_tokens=max_tokens,
                seed=derive_child_seed(seed, index),
                eos_token_ids=eos,
                arrival_s=arrival_s,
                deadline_s=deadline_s,
                priority=priority,
                cache_salt=prompt.cache_salt,
            )
            for index in range(params.n)
        ]
        return PreparedRequest(request_id=request_id, prompt=prompt, sampling=params, sequences=sequences)

    def _with_defaults(self, sampling: SamplingParams | None) -> SamplingParams:
        params = self._defaults.sampling if sampling is None else sampling
        return apply_constraint_defaults(params, self._defaults.constraint_switches)

    def _finalize(
        self, params: SamplingParams, max_tokens: int, grammar: PreparedGrammar | None
    ) -> tuple[SamplingParams, tuple[int, ...]]:
        """(parameters as the engine needs them, eos ids)."""
        with_ends, eos = apply_end_tokens(params, self._defaults.end_tokens)
        changes: dict[str, Any] = {}
        if grammar is not None:
            changes |= {"structured_outputs": None, "prepared_grammar": grammar}
        if with_ends.n != 1:
            changes["n"] = 1
        if with_ends.max_tokens != max_tokens:
            changes["max_tokens"] = max_tokens
            changes["min_tokens"] = min(with_ends.min_tokens, max_tokens)
        if with_ends.bad_words:
            changes["bad_words_token_ids"] = self._tokenize_bad_words(with_ends.bad_words)
        return (with_ends.clone(**changes) if changes else with_ends), eos

    def _tokenize_bad_words(self, words: Sequence[str]) -> list[list[int]]:
        """Each word as it looks at the start of a text and behind a space."""
        if self._tokenizer is None:
            raise ValidationError("bad_words need a tokenizer; the engine has none", parameter="bad_words")
        forms: dict[tuple[int, ...], None] = {}
        for word in words:
            for text in (word.lstrip(), " " + word.lstrip()):
                ids = tuple(self._tokenizer.encode(text, add_special_tokens=False))
                if ids and max(ids) < self._limits.vocab_size:
                    forms[ids] = None
        return [list(ids) for ids in forms]


def _without_prompt_logprobs(params: SamplingParams) -> SamplingParams:
    """Sequence 0 reports them for all: the prompt is the same."""
    return params if params.prompt_logprobs is None else params.clone(prompt_logprobs=None)
