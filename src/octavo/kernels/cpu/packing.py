"""Checkpoint tensors into packed matrices, a few rows at a time.

Owns: the order of reading and dropping.   Does not own: the packed layout (native/cpu/pack.cpp).
Invariant: beside the packed matrix at most READ_BYTES of expanded rows exist; a tensor's file pages are dropped once
it is packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from octavo import _native
from octavo.base.errors import ShapeError
from octavo.base.units import ceil_div
from octavo.kernels.ops import FloatArray, LinearSegment, WeightTensor

READ_BYTES = 16 << 20
_PANEL = 32
GATE_COLUMNS = 16
"""Columns of gate, and of up, in a panel of a gated pair (native/include/octavo/kernel_table.h)."""


def pack_segments(
    ops: _native.Backend, segments: Sequence[LinearSegment], dtype: Literal["float32", "bfloat16"]
) -> _native.PackedMatrix:
    """Matrices [N_i, K] side by side; segments without a bias get zeros if another has one. Raises ShapeError."""
    if not segments:
        raise ShapeError("pack_linear: no segments, so N is 0")
    widths = {segment.weight.shape[1] for segment in segments}
    if len(widths) != 1:
        raise ShapeError(f"pack_linear: K differs between the segments: {sorted(widths)}")
    packed = _native.PackedMatrix(ops, dtype, sum(segment.weight.shape[0] for segment in segments), widths.pop())
    first = 0
    for segment in segments:
        _pack_rows(ops, packed, first, segment.weight)
        first += segment.weight.shape[0]
    if any(segment.bias is not None for segment in segments):
        packed.set_bias(np.concatenate([_bias_of(segment) for segment in segments]))
    return packed


def pack_gated(
    ops: _native.Backend, gate: LinearSegment, up: LinearSegment, dtype: Literal["float32", "bfloat16"]
) -> _native.PackedMatrix:
    """A pair [F, K] whose columns lie in turns: GATE_COLUMNS gates, then their ups; the last turn padded with zeros.

    Raises ShapeError.
    """
    num_rows, width = gate.weight.shape
    if up.weight.shape != gate.weight.shape:
        raise ShapeError(f"pack_gated: gate is {gate.weight.shape}, up is {up.weight.shape}")
    packed = _native.PackedMatrix(ops, dtype, 2 * ceil_div(num_rows, GATE_COLUMNS) * GATE_COLUMNS, width, num_rows)
    step = _rows_at_once(width)
    for start in range(0, num_rows, step):
        stop = min(start + step, num_rows)
        ops.pack_columns(
            packed, 2 * start, _in_turns(gate.weight.read_f32(start, stop), up.weight.read_f32(start, stop))
        )
    for segment in (gate, up):
        segment.weight.drop()
    if gate.bias is not None or up.bias is not None:
        packed.set_bias(_in_turns(_bias_of(gate), _bias_of(up)))
    return packed


def _in_turns(gate: FloatArray, up: FloatArray) -> FloatArray:
    """[N, ...] each -> [2 * N rounded up to whole turns, ...]."""
    num_turns = ceil_div(len(gate), GATE_COLUMNS)
    turns = np.zeros((num_turns, 2, GATE_COLUMNS, *gate.shape[1:]), np.float32)
    for kind, values in enumerate((gate, up)):
        padded = np.zeros((num_turns * GATE_COLUMNS, *gate.shape[1:]), np.float32)
        padded[: len(values)] = values
        turns[:, kind] = padded.reshape(num_turns, GATE_COLUMNS, *gate.shape[1:])
    return turns.reshape(-1, *gate.shape[1:])


def pack_table(
    ops: _native.Backend, weight: WeightTensor, dtype: Literal["float32", "bfloat16"]
) -> _native.PackedMatrix:
    """A table [V, E], packed like a linear so that one copy serves as embedding and as head."""
    packed = _native.PackedMatrix(ops, dtype, *weight.shape)
    _pack_rows(ops, packed, 0, weight)
    return packed


def _pack_rows(ops: _native.Backend, packed: _native.PackedMatrix, first: int, weight: WeightTensor) -> None:
    num_rows, width = weight.shape
    step = _rows_at_once(width)
    for start in range(0, num_rows, step):
        rows = weight.read_f32(start, min(start + step, num_rows))
        ops.pack_columns(packed, first + start, np.ascontiguousarray(rows, np.float32))
    weight.drop()


def _rows_at_once(width: int) -> int:
    return max(_PANEL, READ_BYTES // (4 * width) // _PANEL * _PANEL)


def _bias_of(segment: LinearSegment) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    if segment.bias is None:
        return np.zeros(segment.weight.shape[0], np.float32)
    values = segment.bias.read_f32()
    segment.bias.drop()
    return values
