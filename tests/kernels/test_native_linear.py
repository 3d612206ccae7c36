"""Packed linear layers, embedding and logits of the native back end against float64 products."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.checkpoint import ArrayWeight
from fakes.native import as_input, draw, each_dtype, each_level, each_matrix_level, native_ops

from octavo.base.errors import ShapeError
from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import LinearSegment

# Rows below, at and above one tile of every level; columns and depths that leave tails.
SHAPES = [(1, 64, 96), (2, 34, 33), (5, 576, 50), (12, 64, 32), (13, 30, 65), (25, 128, 100), (70, 2, 1)]


def pack(ops: CpuOps, *matrices: np.ndarray, biases: tuple[np.ndarray | None, ...] = ()):
    padded = biases or (None,) * len(matrices)
    return ops.pack_linear(
        [
            LinearSegment(ArrayWeight("w", w), None if b is None else ArrayWeight("b", b))
            for w, b in zip(matrices, padded, strict=True)
        ]
    )


def multiply(ops: CpuOps, x: np.ndarray, packed) -> np.ndarray:
    return ops.array(ops.linear(ops.tensor(x), packed)).copy()


@each_level
@each_dtype
@pytest.mark.parametrize(("rows", "k", "n"), SHAPES)
def test_linear_is_the_product_of_the_rounded_factors(isa: str, dtype: str, rows: int, k: int, n: int) -> None:
    ops, x, w = native_ops(dtype, isa), draw(rows, k), draw(n, k, seed=1)
    expected = as_input(x, dtype) @ as_input(w, dtype).T
    np.testing.assert_allclose(multiply(ops, x, pack(ops, w)), expected, rtol=1e-5, atol=2e-5 * np.sqrt(k))


@each_level
@each_dtype
def test_segments_lie_side_by_side_and_those_without_bias_get_none(isa: str, dtype: str) -> None:
    ops, x = native_ops(dtype, isa), draw(7, 40)
    matrices = [draw(n, 40, seed=n) for n in (33, 1, 64, 20)]
    bias = draw(64, seed=9)
    found = multiply(ops, x, pack(ops, *matrices, biases=(None, None, bias, None)))
    expected = np.concatenate([as_input(x, dtype) @ as_input(w, dtype).T for w in matrices], axis=1)
    expected[:, 34:98] += bias
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@each_level
@each_dtype
def test_a_row_has_the_same_bits_alone_and_in_any_company(isa: str, dtype: str) -> None:
    ops, x, packed = native_ops(dtype, isa), draw(40, 200), pack(native_ops(dtype, isa), draw(70, 200, seed=1))
    whole = multiply(ops, x, packed)
    for start, stop in [(0, 1), (3, 4), (5, 7), (0, 11), (10, 22), (17, 40)]:
        np.testing.assert_array_equal(multiply(ops, x[start:stop], packed), whole[start:stop])


@each_matrix_level
@each_dtype
def test_the_number_of_threads_changes_no_bit(isa: str, dtype: str) -> None:
    x, w = draw(300, 96), draw(500, 96, seed=1)
    one, three = native_ops(dtype, isa, num_threads=1), native_ops(dtype, isa, num_threads=3)
    np.testing.assert_array_equal(multiply(one, x, pack(one, w)), multiply(three, x, pack(three, w)))


@each_level
@each_dtype
def test_embedding_and_tied_logits_share_one_table(isa: str, dtype: str) -> None:
    ops, table = native_ops(dtype, isa), draw(77, 26)
    packed = ops.pack_embedding(ArrayWeight("table", table))
    tokens = np.array([0, 76, 31, 32, 5], np.int32)
    found = ops.array(ops.embedding(tokens, packed, scale=1.5))
    expected = as_input(table, dtype)[tokens] * 1.5
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    x, rows = draw(6, 26, seed=3), np.array([1, 5], np.int32)
    logits = ops.logits(ops.tensor(x), rows, packed)
    expected = as_input(x, dtype)[rows] @ as_input(table, dtype).T
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


@each_level
def test_logits_are_capped_softly(isa: str) -> None:
    ops, table, x = native_ops("float32", isa), draw(40, 16, scale=4), draw(3, 16)
    packed = ops.pack_embedding(ArrayWeight("table", table))
    found = ops.logits(ops.tensor(x), np.arange(3, dtype=np.int32), packed, softcap=5.0)
    expected = 5 * np.tanh(x.astype(np.float64) @ table.T / 5)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@each_matrix_level
@each_dtype
def test_logits_of_a_row_do_not_depend_on_the_rows_beside_it(isa: str, dtype: str) -> None:
    ops = native_ops(dtype, isa)
    packed = ops.pack_embedding(ArrayWeight("table", draw(99, 32)))
    x = ops.tensor(draw(20, 32, seed=1))
    whole = ops.logits(x, np.arange(20, dtype=np.int32), packed).copy()
    for rows in ([4], [0, 19], list(range(3, 18))):
        np.testing.assert_array_equal(ops.logits(x, np.array(rows, np.int32), packed), whole[rows])


def test_packing_reads_each_tensor_once_and_drops_it() -> None:
    weight, bias = ArrayWeight("w", draw(8, 4)), ArrayWeight("b", draw(8))
    native_ops("float32").pack_linear([LinearSegment(weight, bias)])
    assert (weight.num_drops, bias.num_drops) == (1, 1)


def test_sizes_that_disagree_are_refused_by_their_symbol() -> None:
    ops = native_ops("float32")
    packed = pack(ops, draw(8, 6))
    with pytest.raises(ShapeError, match=r"linear: K is 4 in x but 6 in weights"):
        ops.linear(ops.tensor(draw(2, 4)), packed)
    with pytest.raises(ShapeError, match="x must be float32"):
        ops.linear(ops.tensor(draw(2, 6), "bfloat16"), packed)
    with pytest.raises(ShapeError, match="dimensions"):
        ops.linear(ops.tensor(draw(6)), packed)
    with pytest.raises(ShapeError, match="K differs"):
        pack(ops, draw(8, 6), draw(8, 4))
    with pytest.raises(ShapeError, match="even K"):
        pack(native_ops("bfloat16"), draw(8, 3))
    with pytest.raises(ShapeError, match="row 2 is not below T = 2"):
        ops.logits(ops.tensor(draw(2, 6)), np.array([2], np.int32), packed)
    with pytest.raises(ShapeError, match="token 8 is not below V = 8"):
        ops.embedding(np.array([8], np.int32), packed)
    with pytest.raises(ShapeError, match="token -1"):
        ops.embedding(np.array([-1], np.int32), packed)


def test_a_level_that_cannot_run_here_is_refused_with_those_that_can() -> None:
    with pytest.raises(ValueError, match=r"'abacus' is not among .*scalar"):
        CpuOps("float32", num_threads=1, isa="abacus")
