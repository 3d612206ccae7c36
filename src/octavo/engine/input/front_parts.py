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


def open_model(config: EngineConfig) -> Checkpoint:
    """The model's files, opened. Raises LoadError."""
    model = config.model
    path = resolve_model(model.model, download_dir=model.download_dir, revision=model.revision, token=model.hf_token)
    return open_checkpoint(path)


def load_front_parts(config: EngineConfig, checkpoint: Checkpoint) -> FrontParts:
    """Read them. Raises LoadError, ConfigError."""
    tokenizer = _load_tokenizer(config, checkpoint)
    options = config.model
    chat_template = read_chat_template(options.chat_template)
    check_chat_template(tokenizer, chat_template)
    generation_config = read_generation_config(
        options.generation_config, checkpoint.generation_defaults, options.override_generation_config
    )
    return FrontParts(
        tokenizer=tokenizer,
        vocab_size=checkpoint.spec.vocab_size,
        defaults=ModelDefaults(
            sampling=default_sampling_params(generation_config),
            max_tokens=default_max_tokens(generation_config),
            end_tokens=find_end_tokens(
                tokenizer.eos_token_id if tokenizer else None,
                checkpoint.spec.eos_token_ids,
                generation_config,
                vocab_size=checkpoint.spec.vocab_size,
            ),
            chat_template=chat_template,
            constraint_switches=config.answers.structured_outputs_config,
        ),
    )


def _load_tokenizer(config: EngineConfig, checkpoint: Checkpoint) -> Tokenizer | None:
    if config.model.skip_tokenizer_init:
        return None
    if config.model.tokenizer is None:
        return checkpoint.load_tokenizer()
    path = resolve_model(config.model.tokenizer, revision=config.model.tokenizer_revision, token=config.model.hf_token)
    with open_checkpoint(path) as other:
        return other.load_tokenizer()


def make_grammar_backend(read_parts: Callable[[], FrontParts]) -> LazyBackend:
    """Grammars over a model's vocabulary and end tokens; nothing is read or made before one is needed."""

    def make() -> BackendParts:
        from octavo.grammar import make_backend

        parts = read_parts()
        if parts.tokenizer is None:
            raise ValidationError(
                "structured_outputs need a tokenizer; the engine runs without one (skip_tokenizer_init)",
                parameter="structured_outputs",
            )
        ends = (*parts.defaults.end_tokens.eos, *parts.defaults.end_tokens.stop)
        return BackendParts(make_backend("auto", parts.tokenizer.to_json(), parts.vocab_size, ends), frozenset(ends))

    return LazyBackend(make)


def make_inputs(
    parts: FrontParts,
    resolved: ResolvedConfig,
    tokenizer: PromptTokenizer | None = None,
    *,
    grammars: LazyBackend | None = None,
) -> InputProcessor:
    """The gate for requests. tokenizer: in place of the model's own. grammars: None: made for this gate alone."""
    grammars = grammars or make_grammar_backend(lambda: parts)
    return InputProcessor(
        tokenizer or parts.tokenizer,
        RequestLimits(
            vocab_size=parts.vocab_size,
            max_model_len=resolved.model.max_model_len,
            max_logprobs=resolved.options.model.max_logprobs,
        ),
        parts.defaults,
        engine_seed=resolved.options.model.seed,
        prepare_grammar=grammars.prepare,
    )
