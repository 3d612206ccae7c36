"""Number formats of the reference back end: what is stored and what sums are kept in.

Invariant: a bfloat16 value is held as the float32 that equals it; rounding is to nearest, ties to even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Dtype = Literal["float32", "bfloat16"]
Floats = npt.NDArray[np.floating[Any]]
Float32s = npt.NDArray[np.float32]


def round_to_bfloat16(values: Floats) -> Float32s:
    """Nearest bfloat16 of each element, as float32, any shape. Infinities and NaN stay what they are."""
    single = np.ascontiguousarray(values, np.float32)
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, rounded.view(np.float32))


def store(values: Floats, dtype: Dtype) -> Float32s:
    """The values as `dtype` keeps them, in a float32 array."""
    return round_to_bfloat16(values) if dtype == "bfloat16" else np.ascontiguousarray(values, np.float32)


@dataclass(frozen=True, slots=True)
class Precision:
    """dtype: of weights, linear inputs and KV. accumulate: of every sum; float64 serves as oracle in kernel tests."""

    dtype: Dtype
    accumulate: Literal["float32", "float64"] = "float32"

    def widen(self, values: Floats) -> Floats:
        """The values in the format sums are kept in."""
        return values.astype(self.accumulate, copy=False)

    def as_input(self, values: Floats) -> Float32s:
        """The values as a linear layer reads them."""
        return store(values, self.dtype)
