"""The ops that stand for several give the bits of the single ones, whichever way the work is shared out."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from fakes.batches import Chunk, forward_batch
from fakes.checkpoint import ArrayWeight
from fakes.native import draw, each_dtype, each_level, native_ops

from octavo.base.errors import ShapeError
from octavo.config.model_spec import RopeSpec
from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import AttentionBlock, AttentionParams, FeedForwardBlock, LinearSegment
from octavo.kernels.reference import blocks
from octavo.layers.rope import rope_table
from octavo.proto.kv import KvCacheSpec, KvGroup

HIDDEN, INNER = 48, 36  # 36: the last turn of gates is not full
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 16
NUM_ROWS = [1, 2, 13, 47, 48, 150, 331]  # with two threads: shared out by columns up to 47, in chunks from 48 on

each_num_rows = pytest.mark.parametrize("num_rows", NUM_ROWS)


def segment(rows: int, width: int, seed: int, has_bias: bool) -> LinearSegment:
    bias = ArrayWeight("b", draw(rows, seed=seed + 100)) if has_bias else None
    return LinearSegment(ArrayWeight("w", draw(rows, width, seed=seed, scale=width**-0.5)), bias)


def vector(ops: CpuOps, size: int, seed: int):
    return ops.pack_vector(ArrayWeight("v", draw(size, seed=seed)))


def feed_forward_blocks(
    ops: CpuOps, *, is_full: bool, activation: Literal["silu", "gelu_tanh"] = "silu"
) -> tuple[FeedForwardBlock, FeedForwardBlock]:
    """The same block for `feed_forward` and for the single ops; is_full: with biases and post-norms."""
    gate, up = (segment(INNER, HIDDEN, seed, is_full) for seed in (2, 3))
    parts = {
        "out": ops.pack_linear([segment(HIDDEN, HEADS * HEAD_DIM, 1, is_full)]),
        "norm": vector(ops, HIDDEN, 5),
        "activation": activation,
        "down": ops.pack_linear([segment(HIDDEN, INNER, 4, is_full)]),
        "eps": 1e-5,
        "attention_post_norm": vector(ops, HIDDEN, 6) if is_full else None,
        "post_norm": vector(ops, HIDDEN, 7) if is_full else None,
    }
    return (
        FeedForwardBlock(gate_up=ops.pack_gated(gate, up), **parts),
        FeedForwardBlock(gate_up=ops.pack_linear([gate, up]), **parts),
    )


def layer_inputs(ops: CpuOps, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    return draw(num_rows, HEADS * HEAD_DIM, seed=8), draw(num_rows, HIDDEN, seed=9)


@each_level
@each_dtype
@each_num_rows
@pytest.mark.parametrize("is_full", [False, True])
def test_feed_forward_is_its_single_ops(isa: str, dtype: str, num_rows: int, is_full: bool) -> None:
    ops = native_ops(dtype, isa)
    whole, single = feed_forward_blocks(ops, is_full=is_full)
    attended, residual = layer_inputs(ops, num_rows)
    attended_t, residual_t = ops.tensor(attended), ops.tensor(residual, "float32")
    found = ops.array(ops.feed_forward(attended_t, residual_t, whole))
    expected, addend = blocks.feed_forward(ops, attended_t, residual_t, single)
    np.testing.assert_array_equal(found, ops.array(expected) + ops.array(addend))
    np.testing.assert_array_equal(ops.array(residual_t), residual)  # the input stays


@each_level
@pytest.mark.parametrize("rows", [[0], [3, 149], list(range(0, 150, 2)), []])
def test_only_the_rows_asked_for_come_back(isa: str, rows: list[int]) -> None:
    ops = native_ops("bfloat16", isa)
    whole, _ = feed_forward_blocks(ops, is_full=True, activation="gelu_tanh")
    attended, residual = (
        ops.tensor(x, t) for x, t in zip(layer_inputs(ops, 150), ("bfloat16", "float32"), strict=True)
    )
    every = ops.array(ops.feed_forward(attended, residual, whole))
    some = ops.array(ops.feed_forward(attended, residual, whole, rows=np.array(rows, np.int32)))
    np.testing.assert_array_equal(some, every[rows])


def test_one_thread_and_three_give_the_same_bits() -> None:
    found = []
    for num_threads in (1, 2, 3):
        ops = native_ops("bfloat16", num_threads=num_threads)
        whole, _ = feed_forward_blocks(ops, is_full=False)
        attended, residual = layer_inputs(ops, 77)
        found.append(ops.array(ops.feed_forward(ops.tensor(attended), ops.tensor(residual, "float32"), whole)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@each_level
@each_dtype
@each_num_rows
@pytest.mark.parametrize("is_full", [False, True])
def test_project_qkv_is_its_single_ops(isa: str, dtype: str, num_rows: int, is_full: bool) -> None:
    ops = native_ops(dtype, isa)
    spec = KvCacheSpec(
        groups=(KvGroup(kind="full", layers=(0,)),),
        block_size=32,
        num_blocks=12,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        dtype=dtype,  # type: ignore[arg-type]
    )
    block = AttentionBlock(
        layer=0,
        norm=vector(ops, HIDDEN, 1),
        qkv=ops.pack_linear([segment((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN, 2, is_full)]),
        rope=rope_table(RopeSpec(theta=10000.0), HEAD_DIM, 512),
        params=AttentionParams(num_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=HEAD_DIM, scale=1.0),
        eps=1e-5,
        q_norm=vector(ops, HEAD_DIM, 3) if is_full else None,
        k_norm=vector(ops, HEAD_DIM, 4) if is_full else None,
    )
    batch = forward_batch([Chunk(0, 0, [1] * num_rows)], spec, max_blocks=11)
    residual = ops.tensor(draw(num_rows, HIDDEN, seed=5), "float32")
    caches = [ops.allocate_kv(spec) for _ in range(2)]
    found = ops.array(ops.project_qkv(residual, block, batch, caches[0]))
    expected = ops.array(blocks.project_qkv(ops, residual, block, batch, caches[1]))
    np.testing.assert_array_equal(found, expected)
    for block_id in range(spec.num_blocks):
        np.testing.assert_array_equal(caches[0].read_block(block_id), caches[1].read_block(block_id))


def test_wrong_sizes_are_refused_by_name() -> None:
    ops = native_ops("float32")
    whole, single = feed_forward_blocks(ops, is_full=False)
    attended, residual = (ops.tensor(x, "float32") for x in layer_inputs(ops, 4))
    with pytest.raises(ShapeError, match="H \\* D"):
        ops.feed_forward(residual, residual, whole)
    with pytest.raises(ShapeError, match="F"):
        ops.feed_forward(attended, residual, single)
    with pytest.raises(ShapeError, match="row 4"):
        ops.feed_forward(attended, residual, whole, rows=np.array([4], np.int32))
    with pytest.raises(ShapeError, match="gate is"):
        ops.pack_gated(segment(8, HIDDEN, 0, False), segment(9, HIDDEN, 0, False))
