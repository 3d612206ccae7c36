"""What the runner knows of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import CacheHandle, ForwardBatch, IntArray, Tensor
from octavo.proto.kv import KvGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What a forward pass leaves: hidden states of the tokens whose logits are wanted, and the news of the others."""

    states: Tensor
    """[R, E] in the linear input dtype, final norm applied"""
    rows: IntArray
    """[R] the place of each in T, ascending: ForwardBatch.logit_rows"""
    is_finite: npt.NDArray[np.bool_] | None
    """[T]: whether what the token found in the cache, its own key and value included, is finite. None: R is T, so that
    the logits of every token say the same."""

    def places(self, rows: IntArray) -> IntArray:
        """Where in `states` the tokens `rows` of T are; they must be among those wanted."""
        return np.searchsorted(self.rows, rows).astype(np.int32)


class Model(Protocol):
    """A loaded model: weights packed for one op table. Immutable; all state of a sequence is in the cache."""

    @property
    def spec(self) -> ModelSpec: ...

    @property
    def kv_groups(self) -> tuple[KvGroup, ...]:
        """How the layers share block tables; `ForwardBatch.groups` is parallel to it."""
        ...

    def forward(self, batch: ForwardBatch, cache: CacheHandle) -> Hidden:
        """Compute all T tokens as far as the cache and `batch.logit_rows` need it. Writes K and V of all of them."""
        ...

    def logits(self, hidden: Hidden, rows: IntArray) -> Tensor:
        """Tokens `rows` [N] of T, all of them in hidden.rows -> [N, V] float32."""
        ...
