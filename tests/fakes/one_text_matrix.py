"""The 40 mixed requests and the ways through the engine that one text is tested over, on real weights.

Owns: requests, their neighbours in a batch, options of a way.   Does not own: models, levels, what is asserted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from fakes.mixed_requests import MixedRequest, bits, generate, make_requests

from octavo import LLM, SamplingParams

NUM_REQUESTS = 40
BATCH = 64
MAX_MODEL_LEN = 1024
PLENTY = 600
"""Blocks of 32 tokens: all of a batch at once."""
BASE: dict[str, Any] = {
    "dtype": "bfloat16",
    "max_num_seqs": BATCH,
    "max_model_len": MAX_MODEL_LEN,
    "block_size": 32,
    "num_gpu_blocks_override": PLENTY,
}


@dataclass(frozen=True)
class Path:
    """One way through the engine."""

    chunk: int
    depth: int
    threads: int
    caches: bool = True
    num_blocks: int = PLENTY

    @property
    def is_tight(self) -> bool:
        return self.num_blocks < PLENTY

    @property
    def options(self) -> dict[str, Any]:
        return BASE | {
            "max_num_batched_tokens": max(self.chunk, BATCH),
            "long_prefill_token_threshold": self.chunk,
            "max_concurrent_steps": self.depth,
            "num_threads": self.threads,
            "enable_prefix_caching": self.caches,
            "num_gpu_blocks_override": self.num_blocks,
        }

    def __str__(self) -> str:
        cache = "cache" if self.caches else "no cache"
        pool = f", {self.num_blocks} blocks" if self.is_tight else ""
        return f"chunks of {self.chunk}, depth {self.depth}, {self.threads} threads, {cache}{pool}"


def long_requests() -> list[MixedRequest]:
    """Prompts of several blocks and several chunks, some of which begin alike."""

    def ids(length: int, step: int) -> list[int]:
        return [7 + (29 + step * i * i + 5 * i) % 49000 for i in range(length)]

    kinds = [
        SamplingParams(temperature=0, max_tokens=20, ignore_eos=True, logprobs=2),
        SamplingParams(temperature=0.9, seed=3, max_tokens=20, ignore_eos=True),
        SamplingParams(temperature=1.1, seed=4, top_k=40, top_p=0.95, max_tokens=20, ignore_eos=True, logprobs=0),
        SamplingParams(temperature=0.7, seed=5, repetition_penalty=1.2, max_tokens=20, ignore_eos=True),
    ]
    shared = ids(256, 3)
    return [
        MixedRequest(f"long {place}", shared[: 64 * (place % 5)] + ids(100 + 43 * place, 11 + place), kinds[place % 4])
        for place in range(NUM_REQUESTS - 2 * 14)
    ]


def mixed_requests() -> list[MixedRequest]:
    """The 40: two sets of every kind with other lengths, and long ones."""
    short = make_requests(49152, max_tokens=24, prefix_len=40)
    other = make_requests(49152, max_tokens=17, prefix_len=97)
    renamed = [MixedRequest(f"{r.name}, other length", r.prompt, r.params) for r in other]
    return short + renamed + long_requests()


def in_batch_of_64(requests: list[MixedRequest], seed: int, *, is_tight: bool) -> list[MixedRequest]:
    """In an order of its own, filled up with neighbours whose texts nobody looks at.

    is_tight: the neighbours come first, and grow by several blocks each at the cost of those behind them.
    """
    rng = random.Random(seed)
    most = 60 if is_tight else 200
    neighbours = [
        MixedRequest(
            f"neighbour {place}",
            [rng.randrange(5, 49000) for _ in range(rng.randrange(1, most))],
            SamplingParams(
                temperature=1.0, seed=place, max_tokens=100 if is_tight else rng.randrange(1, 30), ignore_eos=True
            ),
        )
        for place in range(BATCH - len(requests))
    ]
    mixed = requests + neighbours
    rng.shuffle(mixed)
    return sorted(mixed, key=lambda request: request in requests) if is_tight else mixed


def generate_alone(model: str, requests: list[MixedRequest]) -> dict[str, Any]:
    """What each request gives by itself, in whole prompts, without a cache."""
    with LLM(model, **Path(chunk=512, depth=1, threads=2, caches=False).options) as llm:
        return bits(generate(llm, requests, together=False))


def assert_same_text(model: str, path: Path, requests: list[MixedRequest], alone: dict[str, Any]) -> None:
    """All requests in batches of 64 on one path, with a cold prefix cache and with a warm one."""
    with LLM(model, **path.options) as llm:
        for number, temperature in enumerate(("cold", "warm")):
            outputs = bits(generate(llm, in_batch_of_64(requests, number, is_tight=path.is_tight)))
            chosen = {request.name: outputs[request.name] for request in requests}
            assert chosen == alone, f"{path}, {temperature} prefix cache"
        stats = llm.engine.front_end.client.stats().scheduler
        assert (stats.num_preemptions > 0) == path.is_tight
