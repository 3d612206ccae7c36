"""`decode`, put together from the single ops of an op table.

Owns: the order in which a layer's ops follow each other.   Does not own: what an op does.
Another back end's own form of it must give the bits that this gives with that back end's single ops.
"""

from __future__ import annotations

from octavo.kernels.ops import (
    AttentionBlock,
    CacheHandle,
    DecoderLayer,
    FeedForwardBlock,
    ForwardBatch,
    OpTable,
    Tensor,
)


def decode(
    ops: OpTable, residual: Tensor, layers: tuple[DecoderLayer, ...], batch: ForwardBatch, cache: CacheHandle
) -> tuple[Tensor, Tensor, Tensor]:
    """The residual, what the last layer adds to it, and what its heads found, [T, ...] each.

    See OpTable.decode. `gate_up` is packed by `pack_linear`, gate first.
    """
    addend = attended = None
    for layer in layers:
        q, residual = project_qkv(ops, residual, addend, layer.attention, batch, cache)
        attended = ops.paged_attention(q, batch, cache, layer.attention.layer, layer.attention.params)
        residual, addend = feed_forward(ops, attended, residual, layer.feed_forward)
    return residual, addend, attended


def project_qkv(
    ops: OpTable,
    residual: Tensor,
    addend: Tensor | None,
    block: AttentionBlock,
    batch: ForwardBatch,
    cache: CacheHandle,
) -> tuple[Tensor, Tensor]:
    """q [T, H, D] and residual + addend, which it is made from."""
    x, residual = ops.rms_norm(residual, block.norm, block.eps, addend=addend)
    q = ops.rotary_write(
        ops.linear(x, block.qkv),
        batch,
        cache,
        block.layer,
        block.rope,
        block.params,
        q_norm=block.q_norm,
        k_norm=block.k_norm,
        eps=block.eps,
    )
    return q, residual


def feed_forward(ops: OpTable, attended: Tensor, residual: Tensor, block: FeedForwardBlock) -> tuple[Tensor, Tensor]:
    """The residual and what is to be added to it, [T, E] each. `gate_up` is packed by `pack_linear`, gate first."""
    addend = ops.linear(attended, block.out)
    if block.attention_post_norm is not None:
        addend = ops.norm_only(addend, block.attention_post_norm, block.eps)
    x, residual = ops.rms_norm(residual, block.norm, block.eps, addend=addend)
    addend = ops.linear(ops.gated_activation(ops.linear(x, block.gate_up), block.activation), block.down)
    if block.post_norm is not None:
        addend = ops.norm_only(addend, block.post_norm, block.eps)
    return residual, addend
