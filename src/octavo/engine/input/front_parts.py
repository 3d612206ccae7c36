"""What a front end needs of a model, without its weights: tokenizer, defaults, what ends a text.

Owns: the front end's half of the start-up.   Does not own: weights and kernels (build.py).
Loaded while the engine loads its own half; they meet in `make_inputs`, which needs the limits the engine found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from octavo.base.errors import ValidationError
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.grammars import BackendParts, LazyBackend
from octavo.engine.input.defaults import (
    EndTokens,
    default_max_tokens,
    default_sampling_params,
    find_end_tokens,
    read_generation_config,
)
from octavo.engine.input.processor import InputProcessor, ModelDefaults
from octavo.engine.input.prompts import PromptTokenizer, read_chat_template
from octavo.engine.input.template_check import check_chat_template
from octavo.engine.input.validate import RequestLimits
from octavo.loading import Checkpoint, Tokenizer, open_checkpoint, resolve_model


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontParts:
    """The front end's half of a model."""

    tokenizer: Tokenizer | None
    vocab_size: int
    """Width of the logits."""
    defaults: ModelDefaults

    @property
    def end_tokens(self) -> EndTokens:
        return self.defaults.end_tokens

    @property
    def chat_templates(self) -> tuple[str, str]:
        """(for conversations, for those with tools): the templates that are used; "": there is none."""
        if self.tokenizer is None:
            return "", ""
        chosen = self.defaults.chat_template
        return chosen or self.tokenizer.chat_template or "", chosen or self.tokenizer.tool_template or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What grammars need of a model."""

    tokenizer: Tokenizer | None
    vocab_size: int
    """Width of the logits."""
    end_tokens: EndTokens


def open_model(config: EngineConfig) -> Checkpoint:
    """The model's files, opened. Raises LoadError."""
    model = config.model
    path = resolve_model(model.model, download_dir=model.download_dir, revision=model.revision, token=model.hf_token)
    return open_checkpoint(path)


def load_front_parts(config: EngineConfig, checkpoint: Checkpoint) -> FrontParts:
    """Read them. Raises LoadError, ConfigError."""
    vocabulary = _load_vocabulary(config, checkpoint)
    chat_template = read_chat_template(config.model.chat_template)
    check_chat_template(vocabulary.tokenizer, chat_template)
    generation_config = _generation_config(config, checkpoint)
    return FrontParts(
        tokenizer=vocabulary.tokenizer,
        vocab_size=vocabulary.vocab_size,
        defaults=ModelDefaults(
            sampling=default_sampling_params(generation_config),
            max_tokens=default_max_tokens(generation_config),
            end_tokens=vocabulary.end_tokens,
            chat_template=chat_template,
            constraint_switches=config.answers.structured_outputs_config,
        ),
    )


def read_vocabulary(config: EngineConfig) -> Vocabulary:
    """What grammars need, and no more. Raises LoadError, ConfigError."""
    with open_model(config) as checkpoint:
        return _load_vocabulary(config, checkpoint)


def _load_vocabulary(config: EngineConfig, checkpoint: Checkpoint) -> Vocabulary:
    tokenizer = _load_tokenizer(config, checkpoint)
    end_tokens = find_end_tokens(
        tokenizer.eos_token_id if tokenizer else None,
        checkpoint.spec.eos_token_ids,
        _generation_config(config, checkpoint),
        vocab_size=checkpoint.spec.vocab_size,
    )
    return Vocabulary(tokenizer=tokenizer, vocab_size=checkpoint.spec.vocab_size, end_tokens=end_tokens)


def _generation_config(config: EngineConfig, checkpoint: Checkpoint) -> dict[str, object]:
    options = config.model
    return read_generation_config(
        options.generation_config, checkpoint.generation_defaults, options.override_generation_config
    )


def _load_tokenizer(config: EngineConfig, checkpoint: Checkpoint) -> Tokenizer | None:
    if config.model.skip_tokenizer_init:
        return None
    if config.model.tokenizer is None:
        return checkpoint.load_tokenizer()
    path = resolve_model(config.model.tokenizer, revision=config.model.tokenizer_revision, token=config.model.hf_token)
    with open_checkpoint(path) as other:
        return other.load_tokenizer()


NO_TOKENIZER = "structured_outputs need a tokenizer; the engine runs without one (skip_tokenizer_init)"


def make_grammar_backend(read_parts: Callable[[], FrontParts | Vocabulary]) -> LazyBackend:
    """Grammars over a model's vocabulary and end tokens; nothing is read or made before one is needed."""

    def make() -> BackendParts:
        from octavo.grammar import make_backend

        parts = read_parts()
        if parts.tokenizer is None:
            raise ValidationError(NO_TOKENIZER, parameter="structured_outputs")
        ends = (*parts.end_tokens.eos, *parts.end_tokens.stop)
        return BackendParts(make_backend("auto", parts.tokenizer.to_json(), parts.vocab_size, ends), frozenset(ends))

    return LazyBackend(make)


def make_inputs(
    parts: FrontParts,
    resolved: ResolvedConfig,
    tokenizer: PromptTokenizer | None = None,
    *,
    grammars: LazyBackend | None,
) -> InputProcessor:
    """The gate for requests. tokenizer: in place of the model's own. grammars: None: they are prepared elsewhere."""
    return InputProcessor(
        tokenizer or parts.tokenizer,
        RequestLimits(
            vocab_size=parts.vocab_size,
            max_model_len=resolved.model.max_model_len,
            max_logprobs=resolved.options.model.max_logprobs,
        ),
        parts.defaults,
        engine_seed=resolved.options.model.seed,
        prepare_grammar=None if grammars is None else grammars.prepare,
    )
