"""Rotation, cache pages and paged attention of the native back end against the reference in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from fakes.batches import Chunk, forward_batch
from fakes.checkpoint import ArrayWeight
from fakes.native import draw, each_dtype, each_level, each_matrix_level, native_ops

from octavo.base.errors import ShapeError
from octavo.config.model_spec import RopeSpec
from octavo.kernels.ops import AttentionParams
from octavo.kernels.reference import ReferenceOps
from octavo.kernels.reference.precision import round_to_bfloat16
from octavo.layers.rope import rope_table
from octavo.proto.kv import KvCacheSpec, KvGroup

MAX_BLOCKS = 20
LAYER = 1
MAX_POSITION = 512

Steps = list[list[tuple[int, int, int]]]  # per step (sequence, first token, behind the last)


@dataclass(frozen=True)
class Shape:
    num_heads: int = 6
    num_kv_heads: int = 2
    head_dim: int = 16
    block_size: int = 32
    window: int | None = None
    softcap: float | None = None

    def params(self) -> AttentionParams:
        return AttentionParams(
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            scale=0.4,
            window=self.window,
            softcap=self.softcap,
        )

    def spec(self, dtype: str) -> KvCacheSpec:
        kind = "full" if self.window is None else "sliding_window"
        return KvCacheSpec(
            groups=(KvGroup(kind=kind, layers=(0, LAYER), window=self.window),),
            block_size=self.block_size,
            num_blocks=1 + 3 * MAX_BLOCKS,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.head_dim,
            dtype=dtype,  # type: ignore[arg-type]
        )

    def draw_qkv(self, num_tokens: int, seed: int) -> np.ndarray:
        return draw(num_tokens, (self.num_heads + 2 * self.num_kv_heads) * self.head_dim, seed=seed)


def attend_steps(ops, shape: Shape, steps: Steps, *, dirty: bool = False) -> dict[int, np.ndarray]:
    """Attention output [T, H * D] of each sequence, computed step by step."""
    spec, params = shape.spec(ops.dtype), shape.params()
    rope = rope_table(RopeSpec(theta=10000.0), shape.head_dim, MAX_POSITION)
    cache = ops.allocate_kv(spec)
    if dirty:
        page = np.full_like(cache.read_block(0), np.nan)
        for block_id in range(spec.num_blocks):
            cache.write_block(block_id, page)
    lengths = {seq: max(b for step in steps for s, _, b in step if s == seq) for step in steps for seq, _, _ in step}
    qkv = {seq: shape.draw_qkv(length, seq) for seq, length in lengths.items()}
    found = {seq: np.empty((length, shape.num_heads * shape.head_dim), np.float32) for seq, length in lengths.items()}
    is_native = hasattr(ops, "tensor")
    for step in steps:
        batch = forward_batch([Chunk(s, a, [0] * (b - a)) for s, a, b in step], spec, max_blocks=MAX_BLOCKS)
        rows = np.concatenate([qkv[s][a:b] for s, a, b in step])
        given = ops.tensor(rows, "float32") if is_native else rows
        q = ops.rotary_write(given, batch, cache, LAYER, rope, params)
        if not is_native and ops.dtype == "bfloat16":
            q = round_to_bfloat16(q)  # as the native back end keeps it
        out = ops.paged_attention(q, batch, cache, LAYER, params)
        values = ops.array(out) if is_native else out
        for (seq, start, stop), first in zip(step, batch.query_start, strict=False):
            found[seq][start:stop] = values[first : first + stop - start]
    return found


MIXED: Steps = [
    [(1, 0, 4), (0, 0, 150)],
    [(0, 150, 151), (2, 0, 1), (1, 4, 90)],
    [(0, 151, 300), (1, 90, 91)],
    [(0, 300, 301), (1, 91, 92), (2, 1, 2)],
]
SHAPES = [
    Shape(),
    Shape(block_size=16),
    Shape(num_heads=9, num_kv_heads=3, head_dim=64),
    Shape(num_heads=14, num_kv_heads=2, head_dim=64, block_size=64),
    Shape(num_heads=4, num_kv_heads=1, head_dim=256),
    Shape(num_heads=4, num_kv_heads=4, head_dim=80, block_size=96),
    Shape(head_dim=6),
    Shape(softcap=3.0),
    *(Shape(window=window) for window in (1, 5, 32, 33, 128, 200)),
    Shape(window=40, block_size=16, softcap=2.0),
]


@each_level
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chunks_of_a_mixed_batch_attend_to_their_own_past(isa: str, dtype: str, shape: Shape) -> None:
    found = attend_steps(native_ops(dtype, isa), shape, MIXED)
    expected = attend_steps(ReferenceOps(dtype, accumulate="float64"), shape, MIXED)  # type: ignore[arg-type]
    # bfloat16: the native back end rounds the weights too, as inputs of a product.
    atol, rtol = (2e-5, 0) if dtype == "float32" else (4e-3, 2.0**-7)
    for seq, rows in expected.items():
        np.testing.assert_allclose(found[seq], rows, rtol=rtol, atol=atol)


@each_level
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_neither_chunks_nor_company_change_a_bit(isa: str, dtype: str, shape: Shape) -> None:
    ops = native_ops(dtype, isa)
    mixed = attend_steps(ops, shape, MIXED)
    for seq in (0, 1):
        length = len(mixed[seq])
        for size in (length, 17, 128):
            alone: Steps = [[(seq, start, min(start + size, length))] for start in range(0, length, size)]
            np.testing.assert_array_equal(attend_steps(ops, shape, alone)[seq], mixed[seq])


@each_matrix_level
@each_dtype
@pytest.mark.parametrize("shape", [SHAPES[2], Shape(num_heads=4, num_kv_heads=1, head_dim=256, window=200)], ids=str)
def test_the_number_of_threads_changes_no_bit(isa: str, dtype: str, shape: Shape) -> None:
    # One query over a long past is cut into partitions with many threads, and runs through with one.
    steps: Steps = [[(0, 0, 511)], [(0, 511, 512)]]
    one = attend_steps(native_ops(dtype, isa, num_threads=1), shape, steps)[0]
    four = attend_steps(native_ops(dtype, isa, num_threads=4), shape, steps)[0]
    np.testing.assert_array_equal(one, four)


@each_level
@each_dtype
@pytest.mark.parametrize("window", [None, 20])
def test_what_other_requests_left_in_a_block_is_never_read(isa: str, dtype: str, window: int | None) -> None:
    ops, shape = native_ops(dtype, isa), Shape(window=window)
    steps: Steps = [[(0, 0, 33)], [(0, 33, 34)], [(0, 34, 35), (1, 0, 1)], [(0, 35, 77)]]
    clean, dirty = attend_steps(ops, shape, steps), attend_steps(ops, shape, steps, dirty=True)
    for seq, rows in clean.items():
        np.testing.assert_array_equal(dirty[seq], rows)


@each_level
@each_dtype
@pytest.mark.parametrize("head_dim", [6, 16, 64, 80])
@pytest.mark.parametrize("has_norms", [False, True])
def test_rotation_and_stored_pages_are_those_of_the_reference(
    isa: str, dtype: str, head_dim: int, has_norms: bool
) -> None:
    shape = Shape(head_dim=head_dim)
    spec, params = shape.spec(dtype), shape.params()
    rope = rope_table(RopeSpec(theta=10000.0), head_dim, 64)
    qkv = shape.draw_qkv(45, 0)
    batch = forward_batch([Chunk(0, 0, [0] * 45)], spec, max_blocks=MAX_BLOCKS)
    norms = [draw(head_dim, seed=seed) for seed in (5, 6)] if has_norms else [None, None]
    pages, queries = [], []
    for ops in (native_ops(dtype, isa), ReferenceOps(dtype, accumulate="float64")):  # type: ignore[arg-type]
        is_native = hasattr(ops, "tensor")
        q_norm, k_norm = (None if w is None else ops.pack_vector(ArrayWeight("w", w)) for w in norms)
        cache = ops.allocate_kv(spec)
        given = ops.tensor(qkv, "float32") if is_native else qkv
        q = ops.rotary_write(given, batch, cache, LAYER, rope, params, q_norm=q_norm, k_norm=k_norm, eps=1e-6)
        queries.append(ops.array(q) if is_native else q)
        pages.append([cache.read_block(block_id) for block_id in range(spec.num_blocks)])
    rtol = 1e-5 if dtype == "float32" else 2.0**-7
    np.testing.assert_allclose(queries[0], queries[1], rtol=rtol, atol=1e-5)
    np.testing.assert_allclose(pages[0], pages[1], rtol=rtol, atol=1e-5)


@each_level
@each_dtype
@pytest.mark.parametrize("head_dim", [6, 64])
def test_pages_come_back_as_they_were_written(isa: str, dtype: str, head_dim: int) -> None:
    ops = native_ops(dtype, isa)
    cache = ops.allocate_kv(Shape(head_dim=head_dim).spec(dtype))
    assert not cache.read_block(3).any()
    page = ops.array(ops.tensor(draw(*cache.read_block(3).shape).reshape(2, -1))).reshape(cache.read_block(3).shape)
    cache.write_block(3, page)
    ops.copy_blocks(cache, [(3, 5), (5, 7)])
    for block_id in (3, 5, 7):
        np.testing.assert_array_equal(cache.read_block(block_id), page)
    assert not cache.read_block(4).any()


def one_token() -> tuple:
    shape = Shape()
    spec, params = shape.spec("float32"), shape.params()
    rope = rope_table(RopeSpec(theta=10000.0), shape.head_dim, 8)
    batch = forward_batch([Chunk(0, 0, [0])], spec, max_blocks=MAX_BLOCKS)
    ops = native_ops("float32")
    return ops, ops.allocate_kv(spec), batch, rope, params, ops.tensor(shape.draw_qkv(1, 0))


def test_hostile_batches_are_refused_by_name() -> None:
    ops, cache, batch, rope, params, qkv = one_token()
    group = batch.groups[0]

    def write(**changes) -> None:
        ops.rotary_write(qkv, replace(batch, **changes), cache, LAYER, rope, params)

    ids = {"dtype": np.int32}
    with pytest.raises(ShapeError, match="slot 9999"):
        write(groups=(replace(group, slots=np.array([9999], **ids)),))
    with pytest.raises(ShapeError, match="block 5000 is not below B"):
        write(groups=(replace(group, block_table=np.full((1, 2), 5000, **ids)),))
    with pytest.raises(ShapeError, match="block_table has fewer columns"):
        write(groups=(replace(group, block_table=np.zeros((1, 0), **ids)),))
    with pytest.raises(ShapeError, match=r"T is 1 in positions but 2 in slots"):
        write(groups=(replace(group, slots=np.array([32, 33], **ids)),))
    with pytest.raises(ShapeError, match="G is 1 in the cache but 2"):
        write(groups=(group, group))
    with pytest.raises(ShapeError, match="positions of sequence 0"):
        write(positions=np.array([3], **ids))
    with pytest.raises(ShapeError, match=r"query_start must go from 0 to T"):
        write(query_start=np.array([0, 2], **ids))
    # Its first sequence would end beyond all arrays before the second comes back.
    far = {"seq_lens": np.array([1 << 30, 1], **ids), "query_start": np.array([0, 1 << 30, 1], **ids)}
    with pytest.raises(ShapeError, match="query_start must not descend"):
        write(**far, groups=(replace(group, block_table=np.zeros((2, 2), **ids)),))
    with pytest.raises(ShapeError, match="position 8 is not below max_position"):
        write(positions=np.array([8], **ids), seq_lens=np.array([9], **ids))
    with pytest.raises(ShapeError, match="layer 7 has no place"):
        ops.rotary_write(qkv, batch, cache, 7, rope, params)
    with pytest.raises(TypeError):
        write(positions=np.array([0], np.int64))


def test_shapes_of_another_model_are_refused_by_their_symbol() -> None:
    ops, cache, batch, rope, params, qkv = one_token()
    with pytest.raises(ShapeError, match=r"\(H \+ 2K\) \* D is"):
        ops.rotary_write(qkv, batch, cache, LAYER, rope, replace(params, num_heads=8))
    with pytest.raises(ShapeError, match="K is 2 in the cache but 3 in params"):
        ops.rotary_write(qkv, batch, cache, LAYER, rope, replace(params, num_kv_heads=3))
    with pytest.raises(ShapeError, match="D is 16 in the cache but 32 in params"):
        ops.rotary_write(qkv, batch, cache, LAYER, rope, replace(params, head_dim=32))
    q = ops.rotary_write(qkv, batch, cache, LAYER, rope, params)
    with pytest.raises(ShapeError, match="paged_attention: H is 4 in params but 6 in q"):
        ops.paged_attention(q, batch, cache, LAYER, replace(params, num_heads=4))
    with pytest.raises(ShapeError, match="P is 24"):
        ops.allocate_kv(Shape(block_size=24).spec("float32"))
    with pytest.raises(ShapeError, match="D is 15"):
        ops.allocate_kv(Shape(head_dim=15).spec("float32"))
    with pytest.raises(ShapeError, match="page"):
        cache.write_block(1, np.zeros((1, 2), np.float32))
    with pytest.raises(ShapeError, match="block 61 is not below B"):
        cache.read_block(61)
    with pytest.raises(ShapeError, match="copy_blocks: block -1"):
        ops.copy_blocks(cache, [(1, -1)])
