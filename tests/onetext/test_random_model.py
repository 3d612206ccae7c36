"""One text whatever the path: the same requests, planned in every way there is, give the same bits.

The two-layer random model. What is compared with is each request alone, without a prefix cache, one step at a time.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import Any

import pytest
from fakes.hf_folder import write_hf_folder
from fakes.mixed_requests import MixedRequest, bits, generate, make_requests, with_stop_strings
from fakes.tiny_models import TINY_SPECS

from octavo import LLM

BASE = {"max_num_seqs": 16, "max_model_len": 128, "max_num_batched_tokens": 512}
ROOMY = {"num_gpu_blocks_override": 400}


@dataclass(frozen=True)
class Variant:
    """A model on a back end, the depths it is run at, and a pool in which its requests get in each other's way."""

    model: str
    options: dict[str, Any]
    depths: tuple[int, ...]
    num_blocks_tight: int


REFERENCE = {"kernel_backend": "reference", "block_size": 16}
NATIVE = {"kernel_backend": "cpu", "block_size": 32}
VARIANTS = {
    "llama, reference": Variant("llama", REFERENCE, (1, 2, 3), 11),
    "gemma, reference": Variant("gemma3_text", REFERENCE, (2,), 26),
    "llama, native": Variant("llama", NATIVE, (1, 2, 3), 8),
    "llama, native bfloat16": Variant("llama", NATIVE | {"dtype": "bfloat16"}, (2,), 8),
    "gemma, native": Variant("gemma3_text", NATIVE, (1, 2, 3), 17),
}
DEPTHS = [(name, depth) for name, variant in VARIANTS.items() for depth in variant.depths]


@dataclass(frozen=True)
class World:
    """A model on disk, requests, and their outputs alone."""

    path: str
    options: dict[str, Any]
    requests: list[MixedRequest]
    alone: dict[str, Any]


def make_world(folder, name, **shape):
    variant = VARIANTS[name]
    spec = TINY_SPECS[variant.model]
    path = str(write_hf_folder(folder / variant.model, spec))
    options = BASE | variant.options
    with LLM(path, **options | ROOMY, enable_prefix_caching=False, max_concurrent_steps=1) as llm:
        requests = make_requests(spec.vocab_size, **shape)
        requests = with_stop_strings(requests, generate(llm, requests, together=False))
        return World(path, options, requests, bits(generate(llm, requests, together=False)))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """name of a variant -> its world, made when first asked for."""
    folder = tmp_path_factory.mktemp("models")
    return functools.cache(lambda name: make_world(folder, name))


@pytest.fixture(scope="module")
def crowded_worlds(tmp_path_factory):
    """The same with requests that start small and grow."""
    folder = tmp_path_factory.mktemp("models")
    return functools.cache(lambda name: make_world(folder, name, max_tokens=40, prefix_len=16))


PATHS = {
    "in a batch": {},
    "in chunks of 16": {"max_num_batched_tokens": 16},
    "in chunks of 64": {"max_num_batched_tokens": 64},
    "in chunks of 16 a request": {"long_prefill_token_threshold": 16},
    "in chunks of 64 a request": {"long_prefill_token_threshold": 64},
    "without a prefix cache": {"enable_prefix_caching": False},
    "by priority": {"scheduling_policy": "priority"},
    "few at a time": {"max_num_seqs": 3},
}


@pytest.mark.parametrize(("name", "depth"), DEPTHS)
@pytest.mark.parametrize("path_name", PATHS)
def test_the_path_does_not_change_a_bit(worlds, path_name, name, depth):
    world = worlds(name)
    options = world.options | ROOMY | PATHS[path_name] | {"max_concurrent_steps": depth}
    with LLM(world.path, **options) as llm:
        assert bits(generate(llm, world.requests)) == world.alone


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_requests_does_not_change_a_bit(worlds, name, seed):
    world = worlds(name)
    shuffled = random.Random(seed).sample(world.requests, len(world.requests))
    with LLM(world.path, **world.options | ROOMY | {"max_num_batched_tokens": 48}) as llm:
        assert bits(generate(llm, shuffled)) == world.alone


@pytest.mark.parametrize("name", VARIANTS)
def test_a_warm_prefix_cache_does_not_change_a_bit(worlds, name):
    world = worlds(name)
    with LLM(world.path, **world.options | ROOMY | {"max_concurrent_steps": VARIANTS[name].depths[-1]}) as llm:
        generate(llm, world.requests)
        warm = generate(llm, world.requests, together=False)
    assert bits(warm) == world.alone
    assert warm["greedy"].num_cached_tokens >= 32
    assert warm["prompt logprobs"].num_cached_tokens == 0


@pytest.mark.parametrize(("name", "depth"), DEPTHS)
@pytest.mark.parametrize("chunk", [16, 512])
@pytest.mark.parametrize("enable_prefix_caching", [True, False])
def test_preemption_does_not_change_a_bit(crowded_worlds, name, depth, chunk, enable_prefix_caching):
    world = crowded_worlds(name)
    options = {
        "num_gpu_blocks_override": VARIANTS[name].num_blocks_tight,
        "max_concurrent_steps": depth,
        "max_num_batched_tokens": chunk,
        "enable_prefix_caching": enable_prefix_caching,
    }
    with LLM(world.path, **world.options | options) as llm:
        assert bits(generate(llm, world.requests)) == world.alone
        assert llm.engine.front_end.client.stats().scheduler.num_preemptions > 0
