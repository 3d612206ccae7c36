from dataclasses import replace

import pytest
from fakes.model_facts import GIB, llama_facts

from octavo.base.errors import ConfigError
from octavo.config.memory_fit import FitRequest, fit_memory, rope_bytes, work_bytes

PAGE = 30 * 2 * 3 * 32 * 64 * 2
"""Bytes of a block of 32 tokens: layers x (K, V) x heads x tokens x head size x bfloat16."""


def request(**changes):
    asked = FitRequest(
        spec=llama_facts().spec,
        dtype="bfloat16",
        storage_dtype="bfloat16",
        block_size=32,
        max_num_seqs=4,
        max_chunk=4096,
        max_model_len="auto",
        kv_cache_memory_bytes="auto",
        num_blocks_override=None,
        weights_bytes=GIB,
        work_bytes=GIB,
        available_bytes=8 * GIB,
    )
    return replace(asked, **changes)


def refusal(**changes):
    with pytest.raises(ConfigError) as caught:
        fit_memory(request(**changes))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("changes", "num_blocks", "max_model_len"),
    [
        ({}, 4 * 256 + 1, 8192),  # all that four sequences of 8192 can use, and the null block
        ({"max_num_seqs": 256}, 3 * GIB // PAGE, 8192),  # half of what weights and work leave
        ({"max_model_len": 100}, 4 * 4 + 1, 100),
        ({"kv_cache_memory_bytes": 100 * PAGE + 5}, 100, 99 * 32),
        ({"kv_cache_memory_bytes": 4 * GIB}, 4 * GIB // PAGE, 8192),  # as asked, though more than is used
        ({"num_blocks_override": 11}, 11, 320),
        ({"available_bytes": 2 * GIB + 20 * PAGE}, 10, 9 * 32),
        ({"kv_cache_memory_bytes": 2 * PAGE, "max_model_len": 32}, 2, 32),
        ({"storage_dtype": "float32", "max_num_seqs": 256}, 3 * GIB // (2 * PAGE), 8192),
    ],
)
def test_pool_and_length(changes, num_blocks, max_model_len):
    fit = fit_memory(request(**changes))
    page = 2 * PAGE if changes.get("storage_dtype") == "float32" else PAGE
    assert (fit.cache.num_blocks, fit.max_model_len) == (num_blocks, max_model_len)
    assert fit.kv_bytes == num_blocks * page


def test_tokens_of_the_pool_leave_out_the_null_block():
    assert fit_memory(request(num_blocks_override=11)).num_kv_tokens == 10 * 32


def test_a_length_that_does_not_fit_is_refused_with_the_one_that_does():
    problem = refusal(max_model_len=8192, kv_cache_memory_bytes=129 * PAGE)
    assert (problem.option, problem.value) == ("max_model_len", 8192)
    assert "fits: 4096" in problem.remedy
    assert f"--kv-cache-memory-bytes {257 * PAGE}" in problem.remedy
    assert fit_memory(request(max_model_len=4096, kv_cache_memory_bytes=129 * PAGE)).max_model_len == 4096
    assert fit_memory(request(max_model_len=8192, kv_cache_memory_bytes=257 * PAGE)).max_model_len == 8192


def test_a_length_above_the_models_is_refused_with_the_models():
    problem = refusal(max_model_len=131072)
    assert problem.option == "max_model_len"
    assert "8192" in problem.remedy


def test_the_pool_asked_for_must_fit_beside_the_weights():
    problem = refusal(kv_cache_memory_bytes=7 * GIB)
    assert problem.option == "kv_cache_memory_bytes"
    assert str(6 * GIB) in problem.remedy
    assert fit_memory(request(kv_cache_memory_bytes=6 * GIB)).kv_bytes <= 6 * GIB


def test_blocks_asked_for_must_fit_beside_the_weights():
    most = 6 * GIB // PAGE
    problem = refusal(num_blocks_override=most + 1)
    assert problem.option == "num_gpu_blocks_override"
    assert str(most) in problem.remedy
    assert fit_memory(request(num_blocks_override=most)).cache.num_blocks == most


def test_a_pool_of_less_than_two_blocks_is_refused_with_the_least():
    problem = refusal(kv_cache_memory_bytes=2 * PAGE - 1)
    assert str(2 * PAGE) in problem.remedy


def test_weights_that_do_not_fit_are_refused_with_the_sum():
    problem = refusal(weights_bytes=8 * GIB)
    assert "8.00 GiB" in problem.remedy
    assert "9.00 GiB" in problem.remedy


def test_hybrid_models_fit_longer_sequences_than_full_ones():
    hybrid = llama_facts(layer_kinds=("full", "sliding_window", "sliding_window") * 10, sliding_window=128).spec
    pool = 100 * PAGE
    assert (
        fit_memory(request(spec=hybrid, kv_cache_memory_bytes=pool, max_chunk=64)).max_model_len
        > fit_memory(request(kv_cache_memory_bytes=pool, max_chunk=64)).max_model_len
    )


def test_a_hybrid_pool_too_small_for_any_sequence_says_what_would_do():
    hybrid = llama_facts(layer_kinds=("full", "sliding_window", "sliding_window") * 10, sliding_window=128).spec
    problem = refusal(spec=hybrid, num_blocks_override=3)
    page = PAGE // 3
    assert f"--kv-cache-memory-bytes {4 * page}" in problem.remedy
    assert fit_memory(request(spec=hybrid, kv_cache_memory_bytes=4 * page)).max_model_len == 32


def test_slots_stay_within_32_bits():
    tiny = llama_facts(num_layers=1, layer_kinds=("full",), num_kv_heads=1, head_dim=2, max_position=2**31).spec
    fit = fit_memory(request(spec=tiny, available_bytes=2**42, max_num_seqs=65536))
    assert fit.cache.num_blocks * 32 <= 2**31


def test_work_grows_with_sequences_and_tokens():
    spec = llama_facts().spec
    small = work_bytes(spec, max_num_seqs=1, num_step_tokens=16)
    assert work_bytes(spec, max_num_seqs=256, num_step_tokens=16) - small == 255 * 8 * spec.vocab_size
    assert work_bytes(spec, max_num_seqs=1, num_step_tokens=4096) > small


WINDOWS_ONLY = {"layer_kinds": ("sliding_window",) * 30, "sliding_window": 64, "max_position": 2**24}
"""A window's KV fits any length, so that only the tables limit it."""


def test_a_length_is_no_longer_than_its_tables_fit():
    spec = llama_facts(**WINDOWS_ONLY).spec
    fit = fit_memory(request(spec=spec, available_bytes=3 * GIB))
    assert rope_bytes(spec, fit.max_model_len) <= GIB // 2
    assert fit.max_model_len > 2**20
    problem = refusal(spec=spec, available_bytes=3 * GIB, max_model_len=2**24)
    assert f"--max-model-len {fit.max_model_len}" in problem.remedy
