"""Gated activations of the feed-forward block. Source: GLU variants, arXiv 2002.05202; GELU, arXiv 1606.08415."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from octavo.kernels.reference.precision import Floats, Precision


def gate(gate_up: Floats, kind: Literal["silu", "gelu_tanh"], precision: Precision) -> Floats:
    """gate_up [T, 2F], gate first -> act(gate) * up [T, F]. gelu_tanh is the tanh approximation of GELU."""
    half = gate_up.shape[1] // 2
    x = precision.widen(np.ascontiguousarray(gate_up[:, :half]))
    up = precision.widen(gate_up[:, half:])
    if kind == "silu":
        # exp overflows to infinity for very negative x, and x / infinity is the right limit.
        with np.errstate(over="ignore"):
            return np.asarray(x / (1 + np.exp(-x)) * up)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)) * up)
