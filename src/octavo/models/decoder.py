"""A decoder-only transformer: embedding, layers, final norm, head.

Owns: the order of the pieces.   Does not own: which pieces a model has (the file of its model_type).
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import CacheHandle, ForwardBatch, IntArray, OpTable, Tensor
from octavo.layers.decoder_layer import DecoderLayer
from octavo.layers.norm import RmsNorm
from octavo.layers.step import StepContext
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

    def forward(self, batch: ForwardBatch, cache: CacheHandle) -> Tensor:
        """Hidden states [T, E] in the linear input dtype, final norm applied. Writes K and V of all T tokens."""
        step = StepContext(batch, cache)
        residual = self.ops.embedding(batch.tokens, self.embedding, scale=self.spec.embedding_scale)
        for layer in self.layers:
            residual = layer(residual, step)
        return self.final_norm(residual)

    def logits(self, hidden: Tensor, rows: IntArray) -> Tensor:
        """Rows `rows` [R] of hidden [T, E] -> [R, V] float32."""
        return self.ops.logits(hidden, rows, self.head, softcap=self.spec.logit_softcap)
