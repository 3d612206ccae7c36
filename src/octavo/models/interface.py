"""What the runner knows of a model."""

from __future__ import annotations

from typing import Protocol

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import CacheHandle, ForwardBatch, IntArray, Tensor
from octavo.proto.kv import KvGroup


class Model(Protocol):
    """A loaded model: weights packed for one op table. Immutable; all state of a sequence is in the cache."""

    @property
    def spec(self) -> ModelSpec: ...

    @property
    def kv_groups(self) -> tuple[KvGroup, ...]:
        """How the layers share block tables; `ForwardBatch.groups` is parallel to it."""
        ...

    def forward(self, batch: ForwardBatch, cache: CacheHandle) -> Tensor:
        """Hidden states [T, E] in the linear input dtype, final norm applied. Writes K and V of all T tokens."""
        ...

    def logits(self, hidden: Tensor, rows: IntArray) -> Tensor:
        """Rows `rows` [R] of hidden [T, E] -> [R, V] float32."""
        ...
