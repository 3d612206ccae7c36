"""What a benchmark asks: prompts and output lengths, from a seed or from a file.

Owns: reading and drawing requests.   Does not own: running them.
Same seed, same requests: each function has its own generator.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.outputs import RequestOutput

Encode = Callable[[str], list[int]]
Generate = Callable[..., list[RequestOutput]]
"""LLM.generate, or a stand-in: (prompts, sampling_params, use_tqdm=...)."""

MIN_TOKENS = 4
MAX_PROMPT_TOKENS = 1024
MAX_TOTAL_TOKENS = 2048
"""ShareGPT conversations outside of these are left out, as in vLLM's benchmark."""
MAX_RANDOM_ID = 10_000
"""Random prompts draw from below this, as in vLLM's benchmark."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of a benchmark."""

    prompt_token_ids: list[int]
    num_output_tokens: int
    text: str | None = None
    """The prompt as text, where the dataset has text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomShape:
    """Lengths of random requests, in tokens."""

    input_len: int
    output_len: int
    range_ratio: float = 0.0
    """Lengths are drawn evenly from len x (1 - ratio) to len x (1 + ratio)."""
    prefix_len: int = 0
    """Tokens that all prompts begin with, beside input_len."""


def draw_random(num_samples: int, shape: RandomShape, *, vocab_size: int, seed: int) -> list[Sample]:
    """Requests of random token ids. No two prompts share more than the prefix, but by chance."""
    generator = np.random.default_rng(seed)
    highest = min(vocab_size, MAX_RANDOM_ID)
    prefix = generator.integers(0, highest, shape.prefix_len).tolist()

    def draw_length(length: int) -> int:
        spread = int(length * shape.range_ratio)
        return max(1, int(generator.integers(length - spread, length + spread + 1)))

    return [
        Sample(
            prefix + generator.integers(0, highest, draw_length(shape.input_len)).tolist(),
            draw_length(shape.output_len),
        )
        for _ in range(num_samples)
    ]


def read_sharegpt(path: Path, num_samples: int, *, encode: Encode, output_len: int | None, seed: int) -> list[Sample]:
    """First question and answer of conversations in a ShareGPT file, in random order. Raises ConfigError."""
    conversations = [entry.get("conversations", []) for entry in _read_list(path)]
    pairs = [turns for turns in conversations if len(turns) >= 2]
    np.random.default_rng(seed).shuffle(pairs)
    samples: list[Sample] = []
    for turns in pairs:
        if len(samples) == num_samples:
            break
        prompt, answer = encode(turns[0]["value"]), encode(turns[1]["value"])
        num_output = output_len or len(answer)
        is_short = len(prompt) < MIN_TOKENS or (output_len is None and num_output < MIN_TOKENS)
        if not is_short and len(prompt) <= MAX_PROMPT_TOKENS and len(prompt) + num_output <= MAX_TOTAL_TOKENS:
            samples.append(Sample(prompt, num_output, text=turns[0]["value"]))
    return samples


def read_custom(path: Path, num_samples: int, *, encode: Encode, output_len: int) -> list[Sample]:
    """The first lines of a JSON lines file: {"prompt": ..., "output_tokens": optional}. Raises ConfigError."""
    samples: list[Sample] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if len(samples) == num_samples:
            break
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            prompt, num_output = entry["prompt"], int(entry.get("output_tokens", output_len))
            samples.append(Sample(encode(prompt), num_output, text=prompt))
        except (ValueError, KeyError, TypeError):
            remedy = f'line {number} of {path} is not like {{"prompt": "..."}}'
            raise ConfigError([ConfigProblem("--dataset-path", str(path), remedy)]) from None
    return samples


def _read_list(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    try:
        entries = json.loads(read_text(path))
    except ValueError as error:
        raise ConfigError([ConfigProblem("--dataset-path", str(path), f"is not JSON: {error}")]) from None
    if not isinstance(entries, list):
        raise ConfigError([ConfigProblem("--dataset-path", str(path), "must be a JSON list of conversations")])
    return entries


def read_text(path: Path) -> str:
    """A dataset file. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([ConfigProblem("--dataset-path", str(path), f"cannot be read: {error}")]) from None
