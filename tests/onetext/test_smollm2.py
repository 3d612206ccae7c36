"""One text on a real model: SmolLM2, short prompts, every kind of request, the ways of planning that differ most."""

from __future__ import annotations

import pytest
from fakes.mixed_requests import MixedRequest, bits, generate, make_requests

from octavo import LLM, SamplingParams

pytestmark = pytest.mark.needs_smollm2

BASE = {"max_num_seqs": 16, "max_model_len": 128, "block_size": 32, "num_gpu_blocks_override": 64}
NAMES = {"greedy", "seeded", "penalties", "prompt logprobs", "two of it"}


@pytest.fixture(scope="module")
def world(smollm2_path):
    """(path, requests, their outputs alone)."""
    requests = [r for r in make_requests(49152, max_tokens=6, prefix_len=20) if r.name in NAMES]
    with LLM(str(smollm2_path), **BASE, max_num_batched_tokens=64, enable_prefix_caching=False) as llm:
        return str(smollm2_path), requests, bits(generate(llm, requests, together=False))


@pytest.mark.parametrize(
    "options",
    [
        {"max_num_batched_tokens": 16, "max_concurrent_steps": 3},
        {"max_num_batched_tokens": 64, "max_concurrent_steps": 2},
        {"max_num_batched_tokens": 64, "long_prefill_token_threshold": 16, "max_concurrent_steps": 1},
    ],
    ids=["chunks of 16, depth 3", "chunks of 64, depth 2", "16 a request, depth 1"],
)
def test_the_path_does_not_change_a_bit_of_smollm2(world, options):
    path, requests, alone = world
    with LLM(path, **BASE | options) as llm:
        assert bits(generate(llm, requests)) == alone, "cold prefix cache"
        assert bits(generate(llm, requests[::-1])) == alone, "warm prefix cache, other order"


def test_preemption_does_not_change_a_bit_of_smollm2(smollm2_path):
    """Three prompts that fit into the pool together with a block each to grow by, and then outgrow it."""
    params = SamplingParams(seed=5, temperature=0.8, max_tokens=36, ignore_eos=True, logprobs=1)
    requests = [MixedRequest(str(start), [start + 31 * i for i in range(30)], params) for start in (100, 2000, 3000)]
    options = BASE | {"max_num_batched_tokens": 64}
    with LLM(str(smollm2_path), **options) as llm:
        alone = bits(generate(llm, requests, together=False))
        assert llm.engine.front_end.client.stats().scheduler.num_preemptions == 0
    with LLM(str(smollm2_path), **options | {"num_gpu_blocks_override": 7}) as llm:
        assert bits(generate(llm, requests)) == alone
        assert llm.engine.front_end.client.stats().scheduler.num_preemptions > 0
