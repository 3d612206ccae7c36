"""All layers in one call give the bits of the single ops, whichever way the work is shared out."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import pytest
from fakes.batches import Chunk, forward_batch
from fakes.checkpoint import ArrayWeight
from fakes.native import draw, each_dtype, each_level, native_ops

from octavo import _native
from octavo.base.errors import ShapeError
from octavo.config.model_spec import RopeSpec
from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import (
    AttentionBlock,
    AttentionParams,
    DecoderLayer,
    FeedForwardBlock,
    ForwardBatch,
    GroupBatch,
    KvCache,
    LinearSegment,
)
from octavo.kernels.reference import blocks
from octavo.layers.rope import rope_table
from octavo.proto.kv import KvCacheSpec, KvGroup

HIDDEN, INNER = 48, 36  # 36: the last turn of gates is not full
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 16
NUM_LAYERS, WINDOW = 3, 40
ROPE = rope_table(RopeSpec(theta=10000.0), HEAD_DIM, 4096)

# (start, number of tokens) of each sequence. With two threads: by columns below 48 rows, one chunk a thread up to 144.
BATCHES = {
    "one token": [(0, 1)],
    "a prompt by columns": [(0, 13)],
    "tokens by columns": [(40 + 7 * i, 1) for i in range(31)],
    "tokens": [(3 + 5 * i, 1) for i in range(49)],
    "a prompt": [(0, 150)],
    "a prompt going on": [(70, 331)],
    "prompts and tokens": [(60, 1), (0, 90), (17, 1), (33, 70), (5, 1)],
    "many prompts": [(10 * i, 37) for i in range(9)],
    "a token much longer than others": [(3000, 1), *((i, 1) for i in range(50))],
}
each_batch = pytest.mark.parametrize("chunks", BATCHES.values(), ids=BATCHES)


class Case(NamedTuple):
    """The same layers for `decode` and for the single ops."""

    ops: CpuOps
    layers: tuple[DecoderLayer, ...]
    single: tuple[DecoderLayer, ...]
    spec: KvCacheSpec


def segment(rows: int, width: int, seed: int, has_bias: bool) -> LinearSegment:
    bias = ArrayWeight("b", draw(rows, seed=seed + 100)) if has_bias else None
    return LinearSegment(ArrayWeight("w", draw(rows, width, seed=seed, scale=width**-0.5)), bias)


def vector(ops: CpuOps, size: int, seed: int):
    return ops.pack_vector(ArrayWeight("v", draw(size, seed=seed)))


def make_layer(
    ops: CpuOps, layer: int, *, is_full: bool, activation: Literal["silu", "gelu_tanh"]
) -> tuple[DecoderLayer, DecoderLayer]:
    """is_full: with biases, head norms and post-norms. Every other layer has a window."""
    seed = 1000 * (layer + 1)
    gate, up = (segment(INNER, HIDDEN, seed + i, is_full) for i in (2, 3))
    behind = {
        "out": ops.pack_linear([segment(HIDDEN, HEADS * HEAD_DIM, seed + 1, is_full)]),
        "norm": vector(ops, HIDDEN, seed + 5),
        "activation": activation,
        "down": ops.pack_linear([segment(HIDDEN, INNER, seed + 4, is_full)]),
        "eps": 1e-5,
        "attention_post_norm": vector(ops, HIDDEN, seed + 6) if is_full else None,
        "post_norm": vector(ops, HIDDEN, seed + 7) if is_full else None,
    }
    attention = AttentionBlock(
        layer=layer,
        norm=vector(ops, HIDDEN, seed + 8),
        qkv=ops.pack_linear([segment((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN, seed + 9, is_full)]),
        rope=ROPE,
        params=AttentionParams(
            num_heads=HEADS,
            num_kv_heads=KV_HEADS,
            head_dim=HEAD_DIM,
            scale=0.3,
            window=WINDOW if layer % 2 else None,
        ),
        eps=1e-5,
        q_norm=vector(ops, HEAD_DIM, seed + 10) if is_full else None,
        k_norm=vector(ops, HEAD_DIM, seed + 11) if is_full else None,
    )
    return (
        DecoderLayer(attention=attention, feed_forward=FeedForwardBlock(gate_up=ops.pack_gated(gate, up), **behind)),
        DecoderLayer(attention=attention, feed_forward=FeedForwardBlock(gate_up=ops.pack_linear([gate, up]), **behind)),
    )


def make_case(
    dtype: str,
    isa: str = "auto",
    *,
    is_full: bool = False,
    activation: Literal["silu", "gelu_tanh"] = "silu",
    num_threads: int = 2,
) -> Case:
    ops = native_ops(dtype, isa, num_threads)
    pairs = [make_layer(ops, i, is_full=is_full, activation=activation) for i in range(NUM_LAYERS)]
    spec = KvCacheSpec(
        groups=(
            KvGroup(kind="full", layers=(0, 2)),
            KvGroup(kind="sliding_window", layers=(1,), window=WINDOW),
        ),
        block_size=32,
        num_blocks=2 * 51 * 96 + 1,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        dtype=dtype,  # type: ignore[arg-type]
    )
    return Case(ops, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), spec)


def make_batch(case: Case, chunks: list[tuple[int, int]]) -> ForwardBatch:
    parts = [Chunk(seq, start, [1] * count) for seq, (start, count) in enumerate(chunks)]
    return forward_batch(parts, case.spec, max_blocks=96)


def filled_cache(case: Case, batch: ForwardBatch) -> KvCache:
    """What earlier steps may have left in the blocks of the batch."""
    cache = case.ops.allocate_kv(case.spec)
    for block_id in sorted({int(i) for group in batch.groups for i in np.unique(group.block_table)}):
        cache.write_block(block_id, draw(2, 2, 32, KV_HEADS, HEAD_DIM, seed=block_id))
    return cache


def run_decode(case: Case, batch: ForwardBatch) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """(behind all layers, what the last heads found, all pages of the batch)"""
    cache = filled_cache(case, batch)
    residual = case.ops.tensor(draw(len(batch.tokens), HIDDEN, seed=5), "float32")
    behind, attended = case.ops.decode(residual, case.layers, batch, cache)
    np.testing.assert_array_equal(case.ops.array(residual), draw(len(batch.tokens), HIDDEN, seed=5))  # the input stays
    return case.ops.array(behind).copy(), case.ops.array(attended).copy(), pages(cache, batch)


def run_single_ops(case: Case, batch: ForwardBatch) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    cache = filled_cache(case, batch)
    residual = case.ops.tensor(draw(len(batch.tokens), HIDDEN, seed=5), "float32")
    behind, addend, attended = blocks.decode(case.ops, residual, case.single, batch, cache)
    return case.ops.array(behind) + case.ops.array(addend), case.ops.array(attended).copy(), pages(cache, batch)


def pages(cache: KvCache, batch: ForwardBatch) -> list[np.ndarray]:
    written = sorted({int(slot) // 32 for group in batch.groups for slot in group.slots})
    return [cache.read_block(block_id) for block_id in written]


def assert_same(found: tuple, expected: tuple) -> None:
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    for page, other in zip(found[2], expected[2], strict=True):
        np.testing.assert_array_equal(page, other)


@each_level
@each_dtype
@each_batch
@pytest.mark.parametrize("is_full", [False, True])
def test_all_layers_are_their_single_ops(isa: str, dtype: str, chunks: list[tuple[int, int]], is_full: bool) -> None:
    case = make_case(dtype, isa, is_full=is_full)
    batch = make_batch(case, chunks)
    assert_same(run_decode(case, batch), run_single_ops(case, batch))


@each_level
@pytest.mark.parametrize("chunks", [[(0, 20)], [(9, 150)], [(0, 70), (80, 80)]], ids=["columns", "one", "two"])
def test_only_the_rows_asked_for_come_back(isa: str, chunks: list[tuple[int, int]]) -> None:
    case = make_case("bfloat16", isa, is_full=True, activation="gelu_tanh")
    batch = make_batch(case, chunks)
    every, attended, _ = run_decode(case, batch)
    last = len(batch.tokens) - 1
    for rows in ([0], [3, last], list(range(0, last, 2)), []):
        some, all_attended, _ = run_decode(case, replace(batch, logit_rows=np.array(rows, np.int32)))
        np.testing.assert_array_equal(some, every[rows])
        np.testing.assert_array_equal(all_attended, attended)


@pytest.mark.parametrize("num_threads", [2, 3, 5])
@each_batch
def test_any_number_of_threads_gives_the_same_bits(num_threads: int, chunks: list[tuple[int, int]]) -> None:
    alone, together = make_case("bfloat16", num_threads=1), make_case("bfloat16", num_threads=num_threads)
    batch = make_batch(alone, chunks)
    assert_same(run_decode(together, batch), run_decode(alone, batch))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["writer first", "reader first"])
def test_rows_wait_for_a_prefix_that_another_sequence_writes_in_the_same_step(order: tuple[int, int]) -> None:
    """A sequence whose first blocks are another's, computed at the same time by another thread."""
    case = make_case("float32")
    starts = [(0, 64), (64, 64)]
    batch = make_batch(case, [starts[i] for i in order])
    writer, reader = order.index(0), order.index(1)
    for group in batch.groups:
        group.block_table[reader, :2] = group.block_table[writer, :2]
    expected = run_single_ops(case, batch)
    for _ in range(20):
        assert_same(run_decode(case, batch), expected)


def test_layers_that_do_not_fit_are_refused_by_name() -> None:
    case = make_case("float32")
    batch = make_batch(case, [(0, 4)])
    cache = case.ops.allocate_kv(case.spec)
    residual = case.ops.tensor(draw(4, HIDDEN), "float32")
    with pytest.raises(ShapeError, match="E"):
        case.ops.decode(case.ops.tensor(draw(4, HIDDEN + 2), "float32"), case.layers, batch, cache)
    with pytest.raises(ShapeError, match="T"):
        case.ops.decode(case.ops.tensor(draw(5, HIDDEN), "float32"), case.layers, batch, cache)
    with pytest.raises(ShapeError, match="F"):
        case.ops.decode(residual, case.single, batch, cache)
    with pytest.raises(ShapeError, match="row 4"):
        case.ops.decode(residual, case.layers, replace(batch, logit_rows=np.array([4], np.int32)), cache)
    with pytest.raises(ShapeError, match="ascend"):
        case.ops.decode(residual, case.layers, replace(batch, logit_rows=np.array([2, 1], np.int32)), cache)
    with pytest.raises(ShapeError, match="no layers"):
        case.ops.decode(residual, (), batch, cache)
    stray = replace(case.layers[0], attention=replace(case.layers[0].attention, layer=7))
    with pytest.raises(ShapeError, match="layer 7"):
        case.ops.decode(residual, (stray,), batch, cache)
    with pytest.raises(ShapeError, match="layer 0 comes twice"):
        case.ops.decode(residual, (case.layers[0], case.layers[0]), batch, cache)
    narrow = replace(case.layers[0].feed_forward, norm=vector(case.ops, HIDDEN - 2, 0))
    with pytest.raises(ShapeError, match="E"):
        case.ops.decode(residual, (replace(case.layers[0], feed_forward=narrow),), batch, cache)
    with pytest.raises(ShapeError, match="gate is"):
        case.ops.pack_gated(segment(8, HIDDEN, 0, False), segment(9, HIDDEN, 0, False))


def test_layers_are_tuples_which_hold_what_they_are_made_of() -> None:
    """What can change, or is nothing, is refused: it would leave the native layers without their parts."""
    for layers in ([], [(None, None)], ([None, None],), ((None, None),)):
        with pytest.raises((TypeError, RuntimeError), match=r"incompatible|bad[_.]cast"):
            _native.DecoderLayers(layers)


@pytest.mark.parametrize("rows", [[0, 0, 1, 2], [3, 2, 1, 0], [0, 1, 2, 4]])
def test_as_many_rows_as_tokens_are_checked_too(rows: list[int]) -> None:
    case = make_case("float32")
    batch = make_batch(case, [(0, 4)])
    residual = case.ops.tensor(draw(4, HIDDEN), "float32")
    wanted = replace(batch, logit_rows=np.array(rows, np.int32))
    with pytest.raises(ShapeError, match=r"ascend|row 4"):
        case.ops.decode(residual, case.layers, wanted, case.ops.allocate_kv(case.spec))


@pytest.mark.parametrize("sizes", [{"num_heads": 2**60 + HEADS}, {"num_heads": 0}, {"head_dim": -HEAD_DIM}])
def test_heads_whose_products_overflow_are_refused(sizes: dict[str, int]) -> None:
    case = make_case("float32")
    batch = make_batch(case, [(0, 4)])
    cache = case.ops.allocate_kv(case.spec)
    layer = case.layers[0]
    params = replace(layer.attention.params, **sizes)
    residual = case.ops.tensor(draw(4, HIDDEN), "float32")
    with pytest.raises(ShapeError, match="H, K and D"):
        case.ops.decode(residual, (replace(layer, attention=replace(layer.attention, params=params)),), batch, cache)
    qkv = case.ops.tensor(draw(4, (HEADS + 2 * KV_HEADS) * HEAD_DIM), "float32")
    with pytest.raises(ShapeError, match=r"H, K and D|\bD is"):
        case.ops.rotary_write(qkv, batch, cache, 0, ROPE, params)
    with pytest.raises(ShapeError, match=r"H, K and D|\bD is"):
        case.ops.paged_attention(case.ops.tensor(draw(4, HEADS, HEAD_DIM)), batch, cache, 0, params)


def test_a_gated_pair_is_refused_where_none_belongs() -> None:
    case = make_case("float32")
    batch = make_batch(case, [(0, 4)])
    half = (HEADS + 2 * KV_HEADS) * HEAD_DIM // 2
    pair = case.ops.pack_gated(segment(half, HIDDEN, 0, False), segment(half, HIDDEN, 1, False))
    stray = replace(case.layers[0], attention=replace(case.layers[0].attention, qkv=pair))
    with pytest.raises(ShapeError, match="qkv is gated"):
        case.ops.decode(case.ops.tensor(draw(4, HIDDEN), "float32"), (stray,), batch, case.ops.allocate_kv(case.spec))


@pytest.mark.parametrize("num_seqs", [0, 2])
def test_a_step_without_tokens_gives_none(num_seqs: int) -> None:
    case = make_case("float32")
    empty = np.zeros(0, np.int32)
    groups = tuple(GroupBatch(slots=empty, block_table=np.ones((num_seqs, 1), np.int32)) for _ in case.spec.groups)
    batch = ForwardBatch(
        tokens=empty,
        positions=empty,
        query_start=np.zeros(num_seqs + 1, np.int32),
        seq_lens=np.full(num_seqs, 5, np.int32),
        groups=groups,
        logit_rows=empty,
    )
    residual = case.ops.tensor(draw(0, HIDDEN), "float32")
    behind, attended = case.ops.decode(residual, case.layers, batch, case.ops.allocate_kv(case.spec))
    assert (behind.shape, attended.shape) == ((0, HIDDEN), (0, HEADS * HEAD_DIM))
