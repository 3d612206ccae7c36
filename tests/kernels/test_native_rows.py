"""Norms and gated activations of the native back end against float64 formulas."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.checkpoint import ArrayWeight
from fakes.native import assert_close, draw, each_dtype, each_level, native_ops

from octavo.base.errors import ShapeError
from octavo.kernels.cpu import CpuOps
from octavo.kernels.reference.precision import round_to_bfloat16

WIDTHS = [1, 7, 16, 33, 576]


def pack_vector(ops: CpuOps, values: np.ndarray):
    return ops.pack_vector(ArrayWeight("w", values))


def normalize(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + eps) * weight


@each_level
@each_dtype
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("has_addend", [False, True])
def test_rms_norm_adds_then_normalizes(isa: str, dtype: str, width: int, has_addend: bool) -> None:
    ops, x, addend, weight = native_ops(dtype, isa), draw(5, width), draw(5, width, seed=1), draw(width, seed=2)
    packed = ops.pack_vector(ArrayWeight("w", weight), add=1.0)
    added = ops.tensor(addend, "float32") if has_addend else None
    normed, residual = ops.rms_norm(ops.tensor(x, "float32"), packed, 1e-5, addend=added)
    expected = x + addend if has_addend else x
    np.testing.assert_array_equal(ops.array(residual), expected)
    assert normed.dtype == dtype
    assert_close(ops.array(normed), normalize(expected, weight + np.float32(1), 1e-5), dtype)


@each_level
def test_norm_only_stays_float32(isa: str) -> None:
    ops, x, weight = native_ops("bfloat16", isa), draw(3, 50), draw(50, seed=2)
    out = ops.norm_only(ops.tensor(x, "float32"), pack_vector(ops, weight), 1e-6)
    assert out.dtype == "float32"
    assert_close(ops.array(out), normalize(x, weight, 1e-6), "float32")


@each_level
@each_dtype
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["silu", "gelu_tanh"])
def test_gated_activation_is_the_formula(isa: str, dtype: str, width: int, kind: str) -> None:
    ops, gate_up = native_ops(dtype, isa), draw(4, 2 * width, scale=4)
    out = ops.array(ops.gated_activation(ops.tensor(gate_up, "float32"), kind))  # type: ignore[arg-type]
    gate, up = np.split(gate_up.astype(np.float64), 2, axis=1)
    if kind == "silu":
        expected = gate / (1 + np.exp(-gate)) * up
    else:
        expected = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) * up
    assert_close(out, expected, dtype, atol=2e-6)


@each_level
def test_activations_of_extreme_gates_stay_in_range(isa: str) -> None:
    ops = native_ops("float32", isa)
    gate = np.array([-1e4, -200, -90, 0, 90, 200, 1e4], np.float32)
    gate_up = np.concatenate([gate, np.ones(7, np.float32)])[None]
    for kind in ("silu", "gelu_tanh"):
        out = ops.array(ops.gated_activation(ops.tensor(gate_up, "float32"), kind))  # type: ignore[arg-type]
        np.testing.assert_allclose(out[0], np.maximum(gate, 0), rtol=1e-6, atol=1e-30)


@each_level
@each_dtype
def test_not_a_number_survives_the_rounding(isa: str, dtype: str) -> None:
    ops, x = native_ops(dtype, isa), draw(2, 20)
    x[1, 3] = np.nan
    normed, _ = ops.rms_norm(ops.tensor(x, "float32"), pack_vector(ops, draw(20)), 1e-5)
    assert np.isfinite(ops.array(normed)[0]).all()
    assert np.isnan(ops.array(normed)[1]).all()


@each_level
def test_rounding_to_bfloat16_is_to_nearest_even(isa: str) -> None:
    ops = native_ops("bfloat16", isa)
    ties = np.float32(1) + np.arange(-9, 10, dtype=np.float32) * np.float32(2.0**-8)
    values = np.concatenate([ties, -ties, draw(1000), draw(100, scale=1e30), draw(100, scale=1e-30)])
    # The norm of ones is one, so the result is the weight, rounded.
    normed, _ = ops.rms_norm(ops.tensor(np.ones((1, len(values))), "float32"), pack_vector(ops, values), 0.0)
    np.testing.assert_array_equal(ops.array(normed)[0], round_to_bfloat16(values))


def test_sizes_that_disagree_are_refused_by_their_symbol() -> None:
    ops = native_ops("float32")
    weight = pack_vector(ops, draw(6))
    with pytest.raises(ShapeError, match=r"rms_norm: E is 8 in x but 6 in weight"):
        ops.rms_norm(ops.tensor(draw(2, 8)), weight, 1e-5)
    with pytest.raises(ShapeError, match=r"T is 2 in x but 3 in addend"):
        ops.rms_norm(ops.tensor(draw(2, 6)), weight, 1e-5, addend=ops.tensor(draw(3, 6)))
    with pytest.raises(ShapeError, match="odd"):
        ops.gated_activation(ops.tensor(draw(2, 5)), "silu")
    with pytest.raises(ShapeError, match="relu"):
        ops.gated_activation(ops.tensor(draw(2, 4)), "relu")  # type: ignore[arg-type]


@each_level
@each_dtype
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_row_with_a_value_that_is_not_finite_is_named(isa: str, dtype: str, bad: float) -> None:
    ops, x = native_ops(dtype, isa), draw(5, 33)
    x[0, 0], x[1, 32], x[4, 0] = 3.3e38, bad, bad
    assert ops.finite_rows(ops.tensor(x)).tolist() == [True, False, True, True, False]
