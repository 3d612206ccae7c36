"""bfloat16 rounding, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.kernels.reference.precision import round_to_bfloat16


def nearest_bfloat16(value: float) -> float:
    """Of the two neighbours with 8 significant bits, the nearer one; of two equally near, the even one."""
    if value == 0 or not np.isfinite(value):
        return value
    exponent = max(int(np.floor(np.log2(abs(value)))), -126)
    step = 2.0 ** (exponent - 7)
    rounded = np.round(value / step) * step  # numpy rounds halves to even
    limit = (2 - 2.0**-7) * 2.0**127
    return rounded if abs(rounded) <= limit else np.copysign(np.inf, value)


@given(st.floats(width=32, allow_nan=False))
def test_rounding_is_to_nearest_and_ties_to_even(value: float) -> None:
    rounded = float(round_to_bfloat16(np.array([value], np.float32))[0])
    assert rounded == nearest_bfloat16(value)


@pytest.mark.parametrize("bits", [0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFC00000])
def test_nan_stays_nan(bits: int) -> None:
    values = np.array([bits], np.uint32).view(np.float32)
    assert np.isnan(round_to_bfloat16(values)).all()


def test_rounded_values_round_to_themselves() -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    once = round_to_bfloat16(values)
    np.testing.assert_array_equal(round_to_bfloat16(once), once)
    assert not np.any(once.view(np.uint32) & 0xFFFF)
