"""Random prompts as text of a wanted number of tokens, as vLLM's serving benchmark defines them.

Owns: the random and prefix_repetition datasets.   Does not own: random token ids for the engine in this process
(samples.py), sending.
Tokens in a row do not survive a round trip through text in general: prompts are decoded and encoded again until their
length is right, at most MAX_ROUNDS times. Same seed, same prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.samples import RandomShape, Sample

MAX_ROUNDS = 10


class TextTokenizer(Protocol):
    """What is needed of a tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    def is_special(self, token_id: int) -> bool: ...
    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, ids: list[int]) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionShape:
    """Lengths of prompts that share a few prefixes, in tokens."""

    prefix_len: int = 256
    suffix_len: int = 256
    num_prefixes: int = 10
    output_len: int = 128


def ordinary_ids(tokenizer: TextTokenizer) -> np.ndarray:
    """All token ids but the special ones, ascending, int64."""
    return np.array([idx for idx in range(tokenizer.vocab_size) if not tokenizer.is_special(idx)], dtype=np.int64)


def draw_random_texts(
    num_samples: int, shape: RandomShape, tokenizer: TextTokenizer | None, *, token_ids: np.ndarray, seed: int
) -> list[Sample]:
    """Prompts of the tokens (offset + index + 0, 1, 2 ...) of `token_ids`, behind one random prefix.

    Without a tokenizer they are token ids only. Raises ConfigError for a range of lengths that reaches 0.
    """
    if not 0 <= shape.range_ratio < 1:
        raise ConfigError([ConfigProblem("--random-range-ratio", shape.range_ratio, "must be at least 0, below 1")])
    if int(shape.input_len * (1 - shape.range_ratio)) + shape.prefix_len < 1:
        raise ConfigError([ConfigProblem("--random-input-len", shape.input_len, "leaves prompts without a token")])
    generator = np.random.default_rng(seed)
    # The server adds its begin token itself.
    num_added = 0 if tokenizer is None else len(tokenizer.encode(""))
    input_len = max(0 if shape.prefix_len else 1, shape.input_len - num_added)
    input_lens = np.maximum(1 - shape.prefix_len, _draw_lengths(generator, input_len, shape.range_ratio, num_samples))
    output_lens = np.maximum(1, _draw_lengths(generator, shape.output_len, shape.range_ratio, num_samples))
    offsets = generator.integers(0, len(token_ids), num_samples)
    prefix = token_ids[generator.integers(0, len(token_ids), shape.prefix_len)].tolist()
    if tokenizer is not None and prefix:
        prefix = _fit(prefix, tokenizer, token_ids, generator).prompt_token_ids
    samples = []
    for index in range(num_samples):
        places = (offsets[index] + index + np.arange(input_lens[index])) % len(token_ids)
        prompt = prefix + token_ids[places].tolist()
        num_output = int(output_lens[index])
        if tokenizer is None:
            samples.append(Sample(prompt, num_output))
        else:
            samples.append(_fit(prompt, tokenizer, token_ids, generator, num_output))
    return samples


def draw_repetitions(
    num_samples: int, shape: RepetitionShape, tokenizer: TextTokenizer | None, *, token_ids: np.ndarray, seed: int
) -> list[Sample]:
    """Prompts of one of a few prefixes and a suffix of their own, shuffled; as many of each prefix, to one.

    Raises ConfigError for fewer prompts than prefixes.
    """
    if not 1 <= shape.num_prefixes <= num_samples:
        remedy = f"must be at least 1 and at most --num-prompts ({num_samples})"
        raise ConfigError([ConfigProblem("--prefix-repetition-num-prefixes", shape.num_prefixes, remedy)])
    generator = np.random.default_rng(seed)

    def draw(length: int) -> list[int]:
        tokens: list[int] = token_ids[generator.integers(0, len(token_ids), length)].tolist()
        return tokens if tokenizer is None else _fit(tokens, tokenizer, token_ids, generator).prompt_token_ids

    def draw_all() -> Iterator[Sample]:
        prefixes = [draw(shape.prefix_len) for _ in range(shape.num_prefixes)]
        for index in range(num_samples):
            prompt = prefixes[index % shape.num_prefixes] + draw(shape.suffix_len)
            text = None if tokenizer is None else tokenizer.decode(prompt)
            yield Sample(prompt, shape.output_len, text=text)

    samples = list(draw_all())
    generator.shuffle(samples)
    return samples


def _draw_lengths(generator: np.random.Generator, length: int, ratio: float, num_samples: int) -> np.ndarray:
    low, high = int(length * (1 - ratio)), int(np.ceil(length * (1 + ratio)))
    return generator.integers(low, high + 1, num_samples)


def _fit(
    tokens: list[int],
    tokenizer: TextTokenizer,
    token_ids: np.ndarray,
    generator: np.random.Generator,
    num_output_tokens: int = 1,
) -> Sample:
    """A prompt like `tokens` whose text has as many tokens again, or nearly so after MAX_ROUNDS."""
    wanted = len(tokens)
    for _ in range(MAX_ROUNDS):
        text = tokenizer.decode(tokens)
        tokens = tokenizer.encode(text, add_special_tokens=False)
        if len(tokens) == wanted:
            break
        missing = wanted - len(tokens)
        if missing > 0:
            tokens = tokens + token_ids[generator.integers(0, len(token_ids), missing)].tolist()
        else:
            tokens = tokens[:wanted]
    else:
        text = tokenizer.decode(tokens)
        tokens = tokenizer.encode(text, add_special_tokens=False)
    return Sample(tokens, num_output_tokens, text=text)
