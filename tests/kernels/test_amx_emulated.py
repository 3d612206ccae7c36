"""The emulated matrix unit: the arithmetic of TDPBF16PS to the bit, and that nobody but tests can choose it.

Shapes, tails, layouts and one text of its kernels are tested with those of all levels (test_native_*.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from fakes.checkpoint import ArrayWeight
from fakes.model_facts import machine_facts
from fakes.native import draw, native_ops

from octavo import _native
from octavo.base.errors import ConfigError
from octavo.config.machine import detect_isa_levels
from octavo.config.resolve import resolve_kernels
from octavo.config.schema import ISA_LEVELS, KernelConfig
from octavo.kernels.ops import LinearSegment
from octavo.kernels.reference.precision import round_to_bfloat16

LEVEL = "amx_emulated"
STEP = 32  # elements of K that one instruction takes
SMALLEST = np.float32(2.0**-126)

needs_level = pytest.mark.skipif(LEVEL not in _native.test_isa_levels(), reason="the emulation needs AVX-512 BF16")


def flush(values: np.ndarray) -> np.ndarray:
    """Denormal numbers become zeros of their sign."""
    return np.where(np.abs(values) < SMALLEST, np.copysign(np.float32(0), values), values)


def multiply_as_the_manual_says(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """[rows, N] float32. Sums of lower and of upper elements of 16 pairs, then both into the result, 32 of K a time.

    A product of two bfloat16 has 16 significant bits, so rounding it (unless it is denormal) changes nothing, and
    multiplication followed by addition is the fused one.
    """
    x, w = flush(round_to_bfloat16(x)), flush(round_to_bfloat16(w))
    out = np.zeros((len(x), len(w)), np.float32)
    for start in range(0, x.shape[1], STEP):
        halves = []
        for half in range(2):
            total = np.zeros_like(out)
            for k in range(start + half, min(start + STEP, x.shape[1]), 2):
                total = flush(total + x[:, None, k] * w[None, :, k])
            halves.append(total)
        out = flush(out + flush(halves[0] + halves[1]))
    return out


def linear(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    ops = native_ops("bfloat16", LEVEL)
    packed = ops.pack_linear([LinearSegment(ArrayWeight("w", w), None)])
    return ops.array(ops.linear(ops.tensor(x), packed)).copy()


@needs_level
@pytest.mark.parametrize(("rows", "k", "n"), [(1, 64, 32), (3, 576, 40), (33, 90, 33), (16, 2, 1), (47, 256, 65)])
def test_products_have_the_bits_of_the_manuals_arithmetic(rows: int, k: int, n: int) -> None:
    x, w = draw(rows, k), draw(n, k, seed=1)
    np.testing.assert_array_equal(linear(x, w), multiply_as_the_manual_says(x, w))


@needs_level
def test_denormal_operands_and_results_are_zero() -> None:
    w = np.eye(4, 8, dtype=np.float32)
    tiny = SMALLEST / 2
    x = np.array([[tiny, SMALLEST, -SMALLEST, 1.0, 0, 0, 0, 0]], np.float32)
    np.testing.assert_array_equal(linear(x, w)[0], [0, SMALLEST, -SMALLEST, 1])
    np.testing.assert_array_equal(linear(x, w * np.float32(0.5))[0], [0, 0, 0, 0.5])


@needs_level
def test_rows_that_are_not_finite_stay_alone() -> None:
    x, w = draw(20, 70), draw(40, 70, seed=1)
    clean = linear(x, w)
    x[7, 3] = np.nan
    x[11, 69] = np.inf
    found = linear(x, w)
    assert not np.isfinite(found[[7, 11]]).any()
    others = [row for row in range(20) if row not in (7, 11)]
    np.testing.assert_array_equal(found[others], clean[others])


def test_no_option_names_it_and_no_machine_offers_it() -> None:
    assert LEVEL not in ISA_LEVELS
    assert LEVEL not in _native.runnable_isa_levels()
    assert LEVEL not in detect_isa_levels()


def test_a_machine_without_the_unit_refuses_the_level_and_says_what_it_needs() -> None:
    machine = machine_facts(isa_levels=("scalar", "avx512_bf16"))
    with pytest.raises(ConfigError, match=r"tile state.*use --cpu-isa scalar or avx512_bf16"):
        resolve_kernels(KernelConfig(cpu_isa="amx"), machine)


def test_the_unit_is_offered_where_the_processor_and_the_system_have_it() -> None:
    assert ("amx" in _native.runnable_isa_levels()) == _native.detect_cpu_features().amx_bf16
