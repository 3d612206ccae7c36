"""Rotation, paged cache and attention of the reference back end against dense formulas in float64."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.batches import Chunk, forward_batch

from octavo.base.errors import ShapeError
from octavo.config.model_spec import RopeSpec
from octavo.kernels.ops import AttentionParams, RopeTable
from octavo.kernels.reference import ReferenceOps
from octavo.kernels.reference.precision import round_to_bfloat16
from octavo.layers.rope import rope_table
from octavo.proto.kv import KvCacheSpec, KvGroup

NUM_HEADS, NUM_KV_HEADS, HEAD_DIM = 6, 2, 16
BLOCK_SIZE, MAX_BLOCKS = 8, 8
LAYER = 1
PAGE_SHAPE = (2, 2, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM)


def attention_params(window: int | None = None, softcap: float | None = None) -> AttentionParams:
    return AttentionParams(
        num_heads=NUM_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        scale=0.3,
        window=window,
        softcap=softcap,
    )


def kv_spec(window: int | None = None, dtype: str = "float32") -> KvCacheSpec:
    group = KvGroup(kind="full" if window is None else "sliding_window", layers=(0, LAYER), window=window)
    return KvCacheSpec(
        groups=(group,),
        block_size=BLOCK_SIZE,
        num_blocks=1 + 3 * MAX_BLOCKS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        dtype=dtype,  # type: ignore[arg-type]
    )


def draw_qkv(num_tokens: int, seed: int) -> np.ndarray:
    width = (NUM_HEADS + 2 * NUM_KV_HEADS) * HEAD_DIM
    return np.random.default_rng(seed).standard_normal((num_tokens, width)).astype(np.float32)


def no_rotation(num_positions: int = 64) -> RopeTable:
    shape = (num_positions, HEAD_DIM // 2)
    return RopeTable(cos=np.ones(shape, np.float32), sin=np.zeros(shape, np.float32))


def dense_attention(qkv: np.ndarray, params: AttentionParams) -> np.ndarray:
    """Attention of one whole sequence [T, (H + 2K) D], unrotated, with masks and in float64 -> [T, H D]."""
    heads = qkv.astype(np.float64).reshape(len(qkv), -1, HEAD_DIM)
    q = heads[:, :NUM_HEADS]
    k = heads[:, NUM_HEADS : NUM_HEADS + NUM_KV_HEADS].repeat(NUM_HEADS // NUM_KV_HEADS, axis=1)
    v = heads[:, NUM_HEADS + NUM_KV_HEADS :].repeat(NUM_HEADS // NUM_KV_HEADS, axis=1)
    scores = np.einsum("thd,shd->hts", q, k) * params.scale
    if params.softcap is not None:
        scores = params.softcap * np.tanh(scores / params.softcap)
    query, key = np.mgrid[: len(qkv), : len(qkv)]
    hidden = key > query
    if params.window is not None:
        hidden |= key <= query - params.window
    scores[:, hidden] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return np.einsum("hts,shd->thd", weights, v).reshape(len(qkv), -1)


@pytest.mark.parametrize("window", [None, 1, 5, 8, 9, 40])
@pytest.mark.parametrize("softcap", [None, 2.0])
def test_chunks_of_a_mixed_batch_attend_to_their_own_past(window: int | None, softcap: float | None) -> None:
    params, spec = attention_params(window, softcap), kv_spec(window)
    qkv = {seq: draw_qkv(length, seq) for seq, length in ((0, 37), (1, 9), (2, 1))}
    steps = [[(1, 0, 4), (0, 0, 20)], [(0, 20, 21), (2, 0, 1), (1, 4, 9)], [(0, 21, 37)]]
    ops = ReferenceOps("float32")
    cache = ops.allocate_kv(spec)
    found = {seq: np.empty((len(rows), NUM_HEADS * HEAD_DIM)) for seq, rows in qkv.items()}
    for step in steps:
        batch = forward_batch([Chunk(s, a, [0] * (b - a)) for s, a, b in step], spec, max_blocks=MAX_BLOCKS)
        rows = np.concatenate([qkv[s][a:b] for s, a, b in step])
        q = ops.rotary_write(rows, batch, cache, LAYER, no_rotation(), params)
        out = ops.paged_attention(q, batch, cache, LAYER, params)
        for (seq, start, stop), first in zip(step, batch.query_start, strict=False):
            found[seq][start:stop] = out[first : first + stop - start]
    for seq, rows in qkv.items():
        np.testing.assert_allclose(found[seq], dense_attention(rows, params), rtol=0, atol=2e-6)


def test_blocks_left_behind_by_the_window_are_not_read() -> None:
    params, spec = attention_params(window=5), kv_spec(window=5)
    ops = ReferenceOps("float32")
    cache = ops.allocate_kv(spec)
    cache.write_block(0, np.full(PAGE_SHAPE, np.nan, np.float32))
    qkv = draw_qkv(30, 0)
    for start, stop in ((0, 29), (29, 30)):
        batch = forward_batch([Chunk(0, start, [0] * (stop - start))], spec, max_blocks=MAX_BLOCKS)
        q = ops.rotary_write(qkv[start:stop], batch, cache, LAYER, no_rotation(), params)
        out = ops.paged_attention(q, batch, cache, LAYER, params)
    assert batch.groups[0].block_table[0, 0] == 0
    np.testing.assert_allclose(out, dense_attention(qkv, params)[29:], rtol=0, atol=2e-6)


def test_rotation_turns_half_against_half_by_the_angle_of_the_position() -> None:
    ops, params, spec = ReferenceOps("float32"), attention_params(), kv_spec()
    cache = ops.allocate_kv(spec)
    rope = rope_table(RopeSpec(theta=10000.0), HEAD_DIM, 64)
    qkv = draw_qkv(30, 0)
    batch = forward_batch([Chunk(0, 0, [0] * 30)], spec, max_blocks=MAX_BLOCKS)
    q = ops.rotary_write(qkv, batch, cache, LAYER, rope, params)
    heads = qkv.reshape(30, -1, HEAD_DIM).astype(np.float64)
    as_complex = heads[:, :, : HEAD_DIM // 2] + 1j * heads[:, :, HEAD_DIM // 2 :]
    angles = np.arange(30)[:, None] * 10000.0 ** (-np.arange(HEAD_DIM // 2) / (HEAD_DIM // 2))
    turned = as_complex * np.exp(1j * angles)[:, None, :]
    expected = np.concatenate([turned.real, turned.imag], axis=2)
    np.testing.assert_allclose(q, expected[:, :NUM_HEADS], rtol=0, atol=2e-5)
    block_id, offset = divmod(int(batch.groups[0].slots[13]), BLOCK_SIZE)
    page = cache.read_block(block_id)
    np.testing.assert_allclose(page[1, 0, offset], expected[13, NUM_HEADS:-NUM_KV_HEADS], rtol=0, atol=2e-5)
    np.testing.assert_array_equal(page[1, 1, offset], qkv[13].reshape(-1, HEAD_DIM)[-NUM_KV_HEADS:])
    assert not page[0].any()


def test_heads_are_normalized_before_the_rotation() -> None:
    ops, params, spec = ReferenceOps("float32"), attention_params(), kv_spec()
    cache = ops.allocate_kv(spec)
    qkv = draw_qkv(3, 0)
    batch = forward_batch([Chunk(0, 0, [0] * 3)], spec, max_blocks=MAX_BLOCKS)
    q_norm, k_norm = (np.random.default_rng(seed).standard_normal(HEAD_DIM).astype(np.float32) for seed in (5, 6))
    q = ops.rotary_write(qkv, batch, cache, LAYER, no_rotation(), params, q_norm=q_norm, k_norm=k_norm, eps=1e-6)
    heads = qkv.reshape(3, -1, HEAD_DIM).astype(np.float64)
    normed = heads / np.sqrt(np.mean(heads**2, axis=2, keepdims=True) + 1e-6)
    np.testing.assert_allclose(q, normed[:, :NUM_HEADS] * q_norm, rtol=1e-5, atol=1e-6)
    page = cache.read_block(int(batch.groups[0].slots[0]) // BLOCK_SIZE)
    np.testing.assert_allclose(page[1, 0, 0], normed[0, NUM_HEADS:-NUM_KV_HEADS] * k_norm, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(page[1, 1, 0], qkv[0].reshape(-1, HEAD_DIM)[-NUM_KV_HEADS:])


def test_a_bfloat16_cache_holds_rounded_values() -> None:
    ops, params, spec = ReferenceOps("bfloat16"), attention_params(), kv_spec(dtype="bfloat16")
    cache = ops.allocate_kv(spec)
    qkv = draw_qkv(1, 0)
    batch = forward_batch([Chunk(0, 0, [0])], spec, max_blocks=MAX_BLOCKS)
    ops.rotary_write(qkv, batch, cache, LAYER, no_rotation(), params)
    page = cache.read_block(int(batch.groups[0].slots[0]) // BLOCK_SIZE)
    np.testing.assert_array_equal(page[1, 1, 0], round_to_bfloat16(qkv).reshape(-1, HEAD_DIM)[-NUM_KV_HEADS:])


def test_pages_are_zero_until_written_and_copies_are_whole() -> None:
    ops = ReferenceOps("float32")
    cache = ops.allocate_kv(kv_spec())
    assert not cache.read_block(3).any()
    page = np.random.default_rng(0).standard_normal(PAGE_SHAPE).astype(np.float32)
    cache.write_block(3, page)
    ops.copy_blocks(cache, [(3, 5), (5, 7)])
    for block_id in (3, 5, 7):
        np.testing.assert_array_equal(cache.read_block(block_id), page)
    assert not cache.read_block(4).any()


def test_a_page_of_another_shape_is_refused() -> None:
    cache = ReferenceOps("float32").allocate_kv(kv_spec())
    with pytest.raises(ShapeError, match="page"):
        cache.write_block(1, np.zeros(PAGE_SHAPE[1:], np.float32))
