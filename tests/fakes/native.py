"""The native back end at every level this processor runs, and what its tests compare.

Among them is `amx_emulated`, the kernels of the matrix unit around an emulated one; `amx` joins where there is one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from octavo import _native
from octavo.kernels.cpu import CpuOps
from octavo.kernels.reference.precision import round_to_bfloat16

LEVELS = (*_native.runnable_isa_levels(), *_native.test_isa_levels())
DTYPES = ("float32", "bfloat16")

each_level = pytest.mark.parametrize("isa", LEVELS)
each_matrix_level = pytest.mark.parametrize("isa", ["auto", *_native.test_isa_levels()])
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


@cache
def native_ops(dtype: str, isa: str = "auto", num_threads: int = 2) -> CpuOps:
    """One back end per kind: their pools sleep between tests."""
    return CpuOps(dtype, num_threads=num_threads, isa=isa)  # type: ignore[arg-type]


def draw(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal float32 numbers."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def as_input(values: np.ndarray, dtype: str) -> np.ndarray:
    """float64 of what the back end computes with."""
    return (round_to_bfloat16(values) if dtype == "bfloat16" else values).astype(np.float64)


def assert_close(found: np.ndarray, expected: np.ndarray, dtype: str, *, atol: float = 1e-5) -> None:
    """Equal but for float32 sums; where results are rounded to bfloat16, but for one unit of the last of its 8 bits."""
    rtol = 1e-5 if dtype == "float32" else 2.0**-8
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
