"""A decoder-only transformer: embedding, layers, final norm, head.

Owns: the order of the pieces.   Does not own: which pieces a model has (the file of its model_type).
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import CacheHandle, DecoderLayer, ForwardBatch, IntArray, OpTable, Tensor
from octavo.layers.norm import RmsNorm
from octavo.models.interface import Hidden
from octavo.proto.kv import KvGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The whole model. `head` is `embedding` itself where the two are tied."""

    ops: OpTable
    spec: ModelSpec
    kv_groups: tuple[KvGroup, ...]
    embedding: Tensor
    layers: tuple[DecoderLayer, ...]
    final_norm: RmsNorm
    head: Tensor

    def forward(self, batch: ForwardBatch, cache: CacheHandle) -> Hidden:
        """See Model.forward. Behind the last attention only the tokens whose logits are wanted go on."""
        embedded = self.ops.embedding(batch.tokens, self.embedding, scale=self.spec.embedding_scale)
        residual, attended = self.ops.decode(embedded, self.layers, batch, cache)
        is_whole = len(batch.logit_rows) == len(batch.tokens)
        return Hidden(
            states=self.final_norm(residual),
            rows=batch.logit_rows,
            is_finite=None if is_whole else self.ops.finite_rows(attended),
        )

    def logits(self, hidden: Hidden, rows: IntArray) -> Tensor:
        """See Model.logits."""
        return self.ops.logits(hidden.states, hidden.places(rows), self.head, softcap=self.spec.logit_softcap)
