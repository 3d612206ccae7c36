"""The requests of a serving benchmark, from any dataset by its name.

Owns: the table of datasets, their defaults, repeating small ones.   Does not own: formats (samples.py, traces.py,
random_text.py). A new dataset is an entry of DATASETS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.random_text import RepetitionShape, draw_random_texts, draw_repetitions, ordinary_ids
from octavo.bench.samples import RandomShape, Sample, read_custom, read_sharegpt
from octavo.bench.traces import TraceOptions, TraceRow, TraceSamples, check_blocks, read_azure, read_mooncake
from octavo.loading import Tokenizer

UNKNOWN_VOCABULARY = np.arange(256, 10_000)
"""Ids drawn from without a tokenizer: in nearly every vocabulary, and special in nearly none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """Which requests. Lengths in tokens; None takes the dataset's own."""

    name: str = "random"
    path: Path | None = None
    num_prompts: int = 1000
    seed: int = 0
    needs_text: bool = False
    """The endpoint takes no token ids."""
    output_len: int | None = None
    random: RandomShape = field(default_factory=lambda: RandomShape(input_len=1024, output_len=128))
    repetition: RepetitionShape = field(default_factory=RepetitionShape)
    trace: TraceOptions = field(default_factory=TraceOptions)
    oversamples: bool = True
    """Repeat requests of a dataset with fewer than wanted."""
    applies_template: bool = True
    """Custom prompts for a completions endpoint become a user's message of the chat template."""

    def need_path(self) -> Path:
        """Raises ConfigError when there is none."""
        if self.path is None:
            raise ConfigError([ConfigProblem("--dataset-path", None, f"--dataset-name {self.name} needs a file")])
        return self.path


def load_samples(options: DatasetOptions, tokenizer: Tokenizer | None) -> Sequence[Sample]:
    """The requests, num_prompts of them unless the dataset has fewer. Raises ConfigError."""
    if options.num_prompts < 1:
        raise ConfigError([ConfigProblem("--num-prompts", options.num_prompts, "must be at least 1")])
    if tokenizer is None and options.needs_text:
        raise ConfigError(
            [ConfigProblem("--skip-tokenizer-init", None, "prompts for a chat endpoint need a tokenizer")]
        )
    samples = DATASETS[options.name](options, tokenizer)
    if not samples:
        raise ConfigError([ConfigProblem("--dataset-path", str(options.path), "the dataset gave no requests")])
    return samples


def _random(options: DatasetOptions, tokenizer: Tokenizer | None) -> list[Sample]:
    ids = _token_ids(tokenizer)
    return draw_random_texts(options.num_prompts, options.random, tokenizer, token_ids=ids, seed=options.seed)


def _repetitions(options: DatasetOptions, tokenizer: Tokenizer | None) -> list[Sample]:
    ids = _token_ids(tokenizer)
    return draw_repetitions(options.num_prompts, options.repetition, tokenizer, token_ids=ids, seed=options.seed)


def _sharegpt(options: DatasetOptions, tokenizer: Tokenizer | None) -> list[Sample]:
    path = options.need_path()
    if tokenizer is None:
        raise ConfigError(
            [ConfigProblem("--skip-tokenizer-init", None, "sharegpt counts tokens: it needs a tokenizer")]
        )
    samples = read_sharegpt(
        path, options.num_prompts, encode=tokenizer.encode, output_len=options.output_len, seed=options.seed
    )
    return _oversample(samples, options)


def _custom(options: DatasetOptions, tokenizer: Tokenizer | None) -> list[Sample]:
    path = options.need_path()

    def encode(prompt: str) -> list[int]:
        return [] if tokenizer is None else tokenizer.encode(prompt)

    samples = read_custom(path, options.num_prompts, encode=encode, output_len=options.output_len or 256)
    if tokenizer is not None and tokenizer.chat_template and options.applies_template and not options.needs_text:
        samples = [_as_message(sample, tokenizer) for sample in samples]
    return _oversample(samples, options)


def _as_message(sample: Sample, tokenizer: Tokenizer) -> Sample:
    text = tokenizer.apply_chat_template([{"role": "user", "content": sample.text}])
    assert isinstance(text, str)
    return Sample(tokenizer.encode(text, add_special_tokens=False), sample.num_output_tokens, text=text)


def _mooncake(options: DatasetOptions, tokenizer: Tokenizer | None) -> TraceSamples:
    path = options.need_path()
    rows = read_mooncake(path, options.num_prompts)
    check_blocks(rows, options.trace.block_tokens, path)
    return _trace(rows, options, tokenizer)


def _azure(options: DatasetOptions, tokenizer: Tokenizer | None) -> TraceSamples:
    return _trace(read_azure(options.need_path(), options.num_prompts), options, tokenizer)


def _trace(rows: list[TraceRow], options: DatasetOptions, tokenizer: Tokenizer | None) -> TraceSamples:
    decode = tokenizer.decode if tokenizer is not None and options.needs_text else None
    return TraceSamples(rows, options.trace, token_ids=_token_ids(tokenizer), decode=decode, seed=options.seed)


DATASETS: dict[str, Callable[[DatasetOptions, Tokenizer | None], Sequence[Sample]]] = {
    "random": _random,
    "sharegpt": _sharegpt,
    "custom": _custom,
    "prefix_repetition": _repetitions,
    "mooncake": _mooncake,
    "azure": _azure,
}


def _token_ids(tokenizer: Tokenizer | None) -> np.ndarray:
    return UNKNOWN_VOCABULARY if tokenizer is None else ordinary_ids(tokenizer)


def _oversample(samples: list[Sample], options: DatasetOptions) -> list[Sample]:
    missing = options.num_prompts - len(samples)
    if missing <= 0 or not samples or not options.oversamples:
        return samples
    picks = np.random.default_rng(options.seed).integers(0, len(samples), missing)
    return samples + [samples[pick] for pick in picks]
