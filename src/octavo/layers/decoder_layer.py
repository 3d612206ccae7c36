"""One layer of a decoder-only transformer: attention, then a gated feed-forward block, each added to the residual.

Owns: the order of the three ops and the residual stream.   Does not own: which parts a model has (models/).
Sources: Attention Is All You Need, arXiv 1706.03762; GLU variants, arXiv 2002.05202.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.kernels.ops import AttentionBlock, FeedForwardBlock, IntArray, OpTable, Tensor
from octavo.layers.step import StepContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderLayer:
    """residual [T, E] float32 -> the same behind the layer. K and V of the step are written on the way."""

    ops: OpTable
    attention: AttentionBlock
    feed_forward: FeedForwardBlock

    def attend(self, residual: Tensor, step: StepContext) -> Tensor:
        """What the heads found, [T, H * D] in the linear input dtype. Writes K and V of all T tokens."""
        q = self.ops.project_qkv(residual, self.attention, step.batch, step.cache)
        return self.ops.paged_attention(q, step.batch, step.cache, self.attention.layer, self.attention.params)

    def leave(self, attended: Tensor, residual: Tensor, rows: IntArray | None = None) -> Tensor:
        """The residual behind the layer, [R, E]: rows `rows` [R] of T, None for all."""
        return self.ops.feed_forward(attended, residual, self.feed_forward, rows=rows)

    def __call__(self, residual: Tensor, step: StepContext) -> Tensor:
        return self.leave(self.attend(residual, step), residual)
