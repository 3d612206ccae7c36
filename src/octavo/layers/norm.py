"""RMSNorm, before a block (with the residual sum) and after one. Source: arXiv 1910.07467."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.kernels.ops import OpTable, Tensor


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """weight [E] float32, any constant already added."""

    ops: OpTable
    weight: Tensor
    eps: float

    def enter(self, residual: Tensor, addend: Tensor | None) -> tuple[Tensor, Tensor]:
        """(norm(residual + addend) as a linear input, residual + addend); both [T, E]."""
        return self.ops.rms_norm(residual, self.weight, self.eps, addend=addend)

    def __call__(self, x: Tensor) -> Tensor:
        """norm(x) [T, E] float32, unrounded."""
        return self.ops.norm_only(x, self.weight, self.eps)
