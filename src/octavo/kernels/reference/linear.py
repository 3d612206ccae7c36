"""Matrix times one token's vector, whatever the number of tokens in the step.

Owns: packed matrices and their product.   Does not own: which layers are fused.
Invariant (one text): an output element comes from one BLAS call whose shape and strides depend on the matrix only.
Cost: the matrix is read from memory once per call; its slices stay in the cache while all tokens pass over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from octavo.base.errors import ShapeError
from octavo.kernels.ops import IntArray, LinearSegment, WeightTensor
from octavo.kernels.reference.precision import Float32s, Floats, Precision

_SLICE_ROWS = 256
"""Output columns per BLAS call: a slice of up to 4096 inputs fits the second-level cache."""
_READ_ROWS = 4096


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """weight [N, K] and bias [N], in the format sums are kept in, already rounded to the dtype of weights."""

    weight: Floats
    bias: Floats | None


def pack_segments(segments: Sequence[LinearSegment], precision: Precision) -> PackedMatrix:
    """Stack matrices [N_i, K] into one [sum N_i, K]. Segments without a bias get zeros where another has one."""
    sizes = [segment.weight.shape[0] for segment in segments]
    num_inputs = segments[0].weight.shape[1]
    weight = np.empty((sum(sizes), num_inputs), precision.accumulate)
    bias = np.zeros(sum(sizes), precision.accumulate) if any(segment.bias for segment in segments) else None
    start = 0
    for segment, size in zip(segments, sizes, strict=True):
        if segment.weight.shape[1] != num_inputs:
            raise ShapeError(f"K={segment.weight.shape[1]} of {segment.weight.name} differs from K={num_inputs}")
        _read_into(weight[start : start + size], segment.weight, precision)
        if bias is not None and segment.bias is not None:
            bias[start : start + size] = segment.bias.read_f32()
            segment.bias.drop()
        start += size
    return PackedMatrix(weight, bias)


def pack_table(weight: WeightTensor, precision: Precision) -> PackedMatrix:
    """An embedding [V, E], which is the matrix of a tied head too."""
    table = np.empty(weight.shape, precision.accumulate)
    _read_into(table, weight, precision)
    return PackedMatrix(table, None)


def multiply(x: Floats, matrix: PackedMatrix, precision: Precision) -> Float32s:
    """x [T, K] -> [T, N] float32."""
    num_outputs, num_inputs = matrix.weight.shape
    if x.shape[1:] != (num_inputs,):
        raise ShapeError(f"x is {x.shape}; the linear layer wants [T, K={num_inputs}]")
    columns = precision.widen(np.ascontiguousarray(x))[:, :, None]  # [T, K, 1]
    out = np.empty((x.shape[0], num_outputs), np.float32)
    for start in range(0, num_outputs, _SLICE_ROWS):
        rows = slice(start, start + _SLICE_ROWS)
        # A stack of [K, 1] operands makes numpy call BLAS once per token, matrix times vector.
        product = np.matmul(matrix.weight[rows], columns)[:, :, 0]
        out[:, rows] = product if matrix.bias is None else product + matrix.bias[rows]
    return out


def look_up(tokens: IntArray, table: PackedMatrix, scale: float) -> Float32s:
    """tokens [T] -> rows [T, E] float32 times `scale`."""
    return np.asarray(table.weight[tokens] * table.weight.dtype.type(scale), np.float32)


def _read_into(out: Floats, weight: WeightTensor, precision: Precision) -> None:
    """Fill `out` [N, K] piece by piece, so that no second copy of a large matrix ever exists."""
    for start in range(0, len(out), _READ_ROWS):
        rows = slice(start, start + _READ_ROWS)
        out[rows] = precision.as_input(weight.read_f32(start, min(start + _READ_ROWS, len(out))))
    weight.drop()
