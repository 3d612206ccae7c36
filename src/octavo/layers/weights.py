"""Weights on their way from a checkpoint into the op table's own form, each shape checked.

Owns: the shape check.   Does not own: files (loading), packed forms (kernels), names of tensors (models).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.base.errors import LoadError
from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import LinearSegment, OpTable, Tensor, WeightTensor


class Checkpoint(Protocol):
    """What models need of a checkpoint. Names are Hugging Face's."""

    @property
    def spec(self) -> ModelSpec: ...

    def tensor(self, name: str) -> WeightTensor:
        """Raises LoadError naming a tensor that is not there."""
        ...

    def has_tensor(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Columns:
    """One matrix of a fused linear: the tensors `{name}.weight` [size, K] and, if so said, `{name}.bias` [size]."""

    name: str
    size: int
    bias: bool = False


class WeightReader:
    """Reads checked tensors of one checkpoint and packs them for one op table."""

    def __init__(self, checkpoint: Checkpoint, ops: OpTable) -> None:
        self._checkpoint = checkpoint
        self._ops = ops

    def vector(self, name: str, size: int, *, add: float = 0.0) -> Tensor:
        """A vector [size] float32, plus `add`. Raises LoadError."""
        return self._ops.pack_vector(self._checked(name, (size,)), add=add)

    def table(self, name: str, num_rows: int, width: int) -> Tensor:
        """An embedding or a head [num_rows, width]. Raises LoadError."""
        return self._ops.pack_embedding(self._checked(name, (num_rows, width)))

    def matrix(self, columns: Sequence[Columns], num_inputs: int) -> Tensor:
        """Matrices [size, num_inputs] side by side, as one linear. Raises LoadError."""
        return self._ops.pack_linear([self._segment(part, num_inputs) for part in columns])

    def gated(self, gate: Columns, up: Columns, num_inputs: int) -> Tensor:
        """The pair of matrices of a gated feed-forward block. Raises LoadError."""
        return self._ops.pack_gated(self._segment(gate, num_inputs), self._segment(up, num_inputs))

    def _segment(self, part: Columns, num_inputs: int) -> LinearSegment:
        return LinearSegment(
            weight=self._checked(f"{part.name}.weight", (part.size, num_inputs)),
            bias=self._checked(f"{part.name}.bias", (part.size,)) if part.bias else None,
        )

    def _checked(self, name: str, shape: tuple[int, ...]) -> WeightTensor:
        tensor = self._checkpoint.tensor(name)
        if tuple(tensor.shape) != shape:
            raise LoadError(
                f"tensor {name} is {list(tensor.shape)}, and the model's configuration makes it {list(shape)}: "
                "the checkpoint is damaged or its configuration belongs to another one"
            )
        return tensor
