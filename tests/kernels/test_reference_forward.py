"""Forward ops of the reference back end against the formulas in float64, and the one-text rule."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.checkpoint import ArrayWeight

from octavo.base.errors import ShapeError
from octavo.kernels.ops import LinearSegment
from octavo.kernels.reference import ReferenceOps
from octavo.kernels.reference.precision import round_to_bfloat16

DTYPES = ["float32", "bfloat16"]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return round_to_bfloat16(values) if dtype == "bfloat16" else values


def weight(values: np.ndarray) -> ArrayWeight:
    return ArrayWeight("w", values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 8, 8), (5, 64, 320), (3, 576, 960)])
def test_linear_is_the_product_with_stored_weights(dtype: str, shape: tuple[int, int, int]) -> None:
    num_tokens, num_inputs, num_outputs = shape
    x, matrix = stored(draw(num_tokens, num_inputs), dtype), draw(num_outputs, num_inputs, seed=1)
    ops = ReferenceOps(dtype)  # type: ignore[arg-type]
    out = ops.linear(x, ops.pack_linear([LinearSegment(weight(matrix))]))
    expected = x.astype(np.float64) @ stored(matrix, dtype).astype(np.float64).T
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-4)


def test_segments_stand_side_by_side_with_zeros_for_a_missing_bias() -> None:
    ops = ReferenceOps("float32")
    first, second, bias, x = draw(3, 4), draw(2, 4, seed=1), draw(2, seed=2), draw(5, 4, seed=3)
    packed = ops.pack_linear([LinearSegment(weight(first)), LinearSegment(weight(second), weight(bias))])
    out = ops.linear(x, packed)
    np.testing.assert_allclose(out[:, :3], x @ first.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out[:, 3:], x @ second.T + bias, rtol=1e-5, atol=1e-6)


def test_a_wrong_inner_size_names_the_symbol() -> None:
    ops = ReferenceOps("float32")
    with pytest.raises(ShapeError, match="K=4"):
        ops.linear(draw(2, 5), ops.pack_linear([LinearSegment(weight(draw(3, 4)))]))
    with pytest.raises(ShapeError, match="K=5"):
        ops.pack_linear([LinearSegment(weight(draw(3, 4))), LinearSegment(weight(draw(3, 5)))])


@pytest.mark.parametrize("num_outputs", [1, 3, 257, 520])
@pytest.mark.parametrize("num_inputs", [16, 100, 576])
def test_a_row_of_a_linear_has_the_same_bits_whatever_the_batch(num_inputs: int, num_outputs: int) -> None:
    ops = ReferenceOps("float32")
    packed = ops.pack_linear([LinearSegment(weight(draw(num_outputs, num_inputs)))])
    x = draw(33, num_inputs, seed=1)
    together = ops.linear(x, packed)
    for token in (0, 1, 2, 7, 16, 32):
        np.testing.assert_array_equal(ops.linear(x[token : token + 1], packed)[0], together[token])
    np.testing.assert_array_equal(ops.linear(x[3:20], packed), together[3:20])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm_adds_then_normalizes(dtype: str) -> None:
    x, addend, scale = draw(4, 64), draw(4, 64, seed=1), draw(64, seed=2)
    ops = ReferenceOps(dtype)  # type: ignore[arg-type]
    normed, residual = ops.rms_norm(x, scale, 1e-5, addend=addend)
    total = x.astype(np.float64) + addend
    expected = total / np.sqrt(np.mean(total**2, axis=1, keepdims=True) + 1e-5) * scale
    np.testing.assert_array_equal(residual, x + addend)
    np.testing.assert_allclose(normed, expected, rtol=5e-3 if dtype == "bfloat16" else 1e-5, atol=1e-6)
    np.testing.assert_array_equal(normed, stored(normed, dtype))


def test_norm_only_is_not_rounded() -> None:
    x, scale = draw(4, 64), draw(64, seed=2)
    exact, _ = ReferenceOps("float32").rms_norm(x, scale, 1e-6)
    np.testing.assert_array_equal(ReferenceOps("bfloat16").norm_only(x, scale, 1e-6), exact)


def test_a_row_of_a_norm_has_the_same_bits_whatever_the_batch() -> None:
    ops, x, scale = ReferenceOps("float32"), draw(17, 576), draw(576, seed=1)
    together, _ = ops.rms_norm(x, scale, 1e-5)
    for token in range(17):
        np.testing.assert_array_equal(ops.rms_norm(x[token : token + 1], scale, 1e-5)[0][0], together[token])


@pytest.mark.parametrize("kind", ["silu", "gelu_tanh"])
def test_gated_activation_is_the_formula(kind: str) -> None:
    gate_up = np.concatenate([np.linspace(-12, 12, 97, dtype=np.float32), draw(97)])[None]
    x, up = gate_up[:, :97].astype(np.float64), gate_up[:, 97:]
    if kind == "silu":
        act = x / (1 + np.exp(-x))
    else:
        act = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    out = ReferenceOps("float32").gated_activation(gate_up, kind)  # type: ignore[arg-type]
    np.testing.assert_allclose(out, act * up, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["silu", "gelu_tanh"])
def test_extreme_gates_neither_warn_nor_become_nan(kind: str) -> None:
    gate_up = np.array([[-1e4, -100, 100, 1e4, 1, 1, 1, 1]], np.float32)
    out = ReferenceOps("float32").gated_activation(gate_up, kind)  # type: ignore[arg-type]
    np.testing.assert_allclose(out, [[0, 0, 100, 1e4]], atol=1e-6)


@pytest.mark.parametrize("kind", ["silu", "gelu_tanh"])
@pytest.mark.parametrize("inner", [5, 96, 1536])
def test_a_row_of_an_activation_has_the_same_bits_whatever_the_batch(kind: str, inner: int) -> None:
    ops, gate_up = ReferenceOps("float32"), draw(9, 2 * inner)
    together = ops.gated_activation(gate_up, kind)  # type: ignore[arg-type]
    for token in range(9):
        alone = ops.gated_activation(gate_up[token : token + 1], kind)  # type: ignore[arg-type]
        np.testing.assert_array_equal(alone[0], together[token])


def test_embedding_and_tied_head_share_one_table() -> None:
    ops, table = ReferenceOps("bfloat16"), draw(50, 16)
    handle = ops.pack_embedding(weight(table))
    tokens = np.array([3, 49, 3], np.int32)
    np.testing.assert_array_equal(ops.embedding(tokens, handle, scale=4.0), round_to_bfloat16(table)[tokens] * 4)
    x = round_to_bfloat16(draw(4, 16, seed=1))
    rows = np.array([1, 3], np.int32)
    expected = x[rows] @ round_to_bfloat16(table).T
    np.testing.assert_allclose(ops.logits(x, rows, handle), expected, rtol=1e-5, atol=1e-5)
    capped = ops.logits(x, rows, handle, softcap=2.0)
    np.testing.assert_allclose(capped, 2 * np.tanh(expected / 2), rtol=1e-5, atol=1e-5)


def test_a_vector_gets_its_constant_added_in_float32() -> None:
    values = draw(7)
    np.testing.assert_array_equal(ReferenceOps("bfloat16").pack_vector(weight(values), add=1.0), values + 1)


def test_float64_sums_are_closer_to_the_truth() -> None:
    x, matrix = draw(4, 3000), draw(8, 3000, seed=1)
    exact = x.astype(np.float64) @ matrix.astype(np.float64).T
    errors = []
    for accumulate in ("float32", "float64"):
        ops = ReferenceOps("float32", accumulate=accumulate)  # type: ignore[arg-type]
        out = ops.linear(x, ops.pack_linear([LinearSegment(weight(matrix))]))
        errors.append(np.abs(out - exact).max())
    assert errors[1] <= np.abs(exact).max() * 2.0**-24
    assert errors[0] > errors[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_with_a_value_that_is_not_finite_is_named(dtype: str, bad: float) -> None:
    x = stored(draw(5, 33), dtype)
    x[1, 32], x[4, 0] = bad, bad
    found = ReferenceOps(dtype).finite_rows(x)  # type: ignore[arg-type]
    assert found.tolist() == [True, False, True, True, False]
