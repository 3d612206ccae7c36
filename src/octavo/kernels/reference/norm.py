"""Root-mean-square normalization of the last axis. Source: RMSNorm, arXiv 1910.07467."""

from __future__ import annotations

import numpy as np

from octavo.kernels.reference.precision import Floats, Precision


def normalize(x: Floats, weight: Floats, eps: float, precision: Precision) -> Floats:
    """x [..., N] / sqrt(mean(x ** 2) + eps) * weight [N], in the format sums are kept in."""
    wide = precision.widen(np.ascontiguousarray(x))
    mean_square = np.mean(wide * wide, axis=-1, keepdims=True)
    return np.asarray(wide / np.sqrt(mean_square + wide.dtype.type(eps)) * precision.widen(weight))
