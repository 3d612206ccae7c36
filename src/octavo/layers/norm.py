"""RMSNorm in front of a linear layer. Source: arXiv 1910.07467."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.kernels.ops import OpTable, Tensor


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """weight [E] float32, any constant already added."""

    ops: OpTable
    weight: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """x [T, E] float32 -> norm(x) [T, E] as a linear input."""
        return self.ops.rms_norm(x, self.weight, self.eps)[0]
