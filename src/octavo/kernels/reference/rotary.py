"""Rotary position embedding of q and k, half-split convention. Source: RoFormer, arXiv 2104.09864."""

from __future__ import annotations

import numpy as np

from octavo.kernels.ops import IntArray, RopeTable
from octavo.kernels.reference.precision import Floats, Precision


def rotate(x: Floats, positions: IntArray, rope: RopeTable, precision: Precision) -> Floats:
    """x [T, heads, D] -> the same shape; element i of the first half turns with element i of the second."""
    half = x.shape[2] // 2
    cos = precision.widen(rope.cos[positions])[:, None, :]  # [T, 1, D/2]
    sin = precision.widen(rope.sin[positions])[:, None, :]
    first, second = x[:, :, :half], x[:, :, half:]
    return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=2)
