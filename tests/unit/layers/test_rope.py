"""Rotary tables against the formulas, written out in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from octavo.config.model_spec import RopeSpec
from octavo.layers.rope import rope_frequencies, rope_table

HEAD_DIM = 64
PLAIN = np.array([500000.0 ** (-2 * i / HEAD_DIM) for i in range(HEAD_DIM // 2)])


def llama3_frequency(frequency: float, factor: float, low: float, high: float, original: int) -> float:
    """One frequency as Llama 3.1 scales it: three cases by wavelength."""
    wavelength = 2 * math.pi / frequency
    if wavelength < original / high:
        return frequency
    if wavelength > original / low:
        return frequency / factor
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


def test_plain_frequencies_fall_geometrically() -> None:
    np.testing.assert_allclose(rope_frequencies(RopeSpec(theta=500000.0), HEAD_DIM), PLAIN, rtol=2e-6)


def test_linear_scaling_divides_all_frequencies() -> None:
    scaled = rope_frequencies(RopeSpec(theta=500000.0, scaling="linear", factor=8.0), HEAD_DIM)
    np.testing.assert_allclose(scaled, PLAIN / 8, rtol=2e-6)


@pytest.mark.parametrize(("factor", "original"), [(8.0, 8192), (32.0, 8192), (8.0, 64)])
def test_llama3_scaling_keeps_short_waves_and_stretches_long_ones(factor: float, original: int) -> None:
    spec = RopeSpec(theta=500000.0, scaling="llama3", factor=factor, original_max_position=original)
    expected = np.array([llama3_frequency(f, factor, 1.0, 4.0, original) for f in PLAIN])
    np.testing.assert_allclose(rope_frequencies(spec, HEAD_DIM), expected, rtol=4e-6)
    kept, stretched = np.isclose(expected, PLAIN), np.isclose(expected * factor, PLAIN)
    assert kept.any()
    assert stretched.any()
    assert (~kept & ~stretched).any()


def test_tables_hold_cosine_and_sine_of_every_position() -> None:
    table = rope_table(RopeSpec(theta=10000.0), 8, 50)
    angles = np.arange(50)[:, None] * np.array([10000.0 ** (-i / 4) for i in range(4)])
    assert table.cos.shape == table.sin.shape == (50, 4)
    np.testing.assert_allclose(table.cos, np.cos(angles), atol=1e-5)
    np.testing.assert_allclose(table.sin, np.sin(angles), atol=1e-5)


def test_divisors_of_a_file_apply_to_each_frequency() -> None:
    factors = tuple(np.linspace(1, 8, HEAD_DIM // 2))
    divided = rope_frequencies(RopeSpec(theta=500000.0, freq_factors=factors), HEAD_DIM)
    np.testing.assert_allclose(divided, PLAIN / factors, rtol=2e-6)


def test_a_long_table_is_made_in_pieces_that_join() -> None:
    spec = RopeSpec(theta=10000.0)
    table = rope_table(spec, 4, 9000)
    angles = np.outer(np.arange(9000, dtype=np.float32), rope_frequencies(spec, 4)).astype(np.float64)
    np.testing.assert_array_equal(table.cos, np.cos(angles).astype(np.float32))
    np.testing.assert_array_equal(table.sin, np.sin(angles).astype(np.float32))
