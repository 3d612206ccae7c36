"""A linear layer: one or more matrices of the checkpoint, fused side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.kernels.ops import OpTable, Tensor
from octavo.layers.weights import Columns, WeightReader


@dataclass(frozen=True, slots=True)
class Linear:
    """x [T, K] in the linear input dtype -> [T, N] float32."""

    ops: OpTable
    weights: Tensor

    @classmethod
    def load(cls, ops: OpTable, reader: WeightReader, columns: Sequence[Columns], num_inputs: int) -> Linear:
        return cls(ops, reader.matrix(columns, num_inputs))

    def __call__(self, x: Tensor) -> Tensor:
        return self.ops.linear(x, self.weights)
