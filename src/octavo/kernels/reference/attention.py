"""Causal attention over the paged cache, one token at a time over exactly the keys it sees.

Invariant (one text): the products and sums of a token have the shapes and strides of its own key range, which
depends on its position alone. Source: PagedAttention, arXiv 2309.06180; Attention Is All You Need, arXiv 1706.03762.
"""

from __future__ import annotations

import numpy as np

from octavo.base.units import ceil_div
from octavo.kernels.ops import AttentionParams, ForwardBatch
from octavo.kernels.reference.cache import ReferenceKvCache
from octavo.kernels.reference.precision import Float32s, Floats, Precision


def attend(
    q: Floats,
    batch: ForwardBatch,
    cache: ReferenceKvCache,
    layer: int,
    params: AttentionParams,
    precision: Precision,
) -> Float32s:
    """q [T, H, D] -> [T, H * D] float32. Query head h reads kv head h // (H / K)."""
    group = batch.groups[cache.group_of(layer)]
    block_size = cache.spec.block_size
    heads_per_kv = params.num_heads // params.num_kv_heads
    grouped = precision.widen(q).reshape(-1, params.num_kv_heads, heads_per_kv, params.head_dim)
    out = np.empty(grouped.shape, np.float32)
    for seq in range(len(batch.seq_lens)):
        start, stop = batch.query_start[seq], batch.query_start[seq + 1]
        if start == stop:
            continue
        first_block = _first_key(int(batch.positions[start]), params.window) // block_size
        num_blocks = ceil_div(int(batch.seq_lens[seq]), block_size)
        keys, values = cache.gather(layer, group.block_table[seq, first_block:num_blocks])
        keys, values = precision.widen(keys), precision.widen(values)
        for token in range(start, stop):
            position = int(batch.positions[token])
            seen = slice(
                _first_key(position, params.window) - first_block * block_size,
                position + 1 - first_block * block_size,
            )
            out[token] = _attend_one(grouped[token], keys[:, seen], values[:, seen], params)
    return out.reshape(len(q), -1)


def _first_key(position: int, window: int | None) -> int:
    return 0 if window is None else max(0, position - window + 1)


def _attend_one(q: Floats, keys: Floats, values: Floats, params: AttentionParams) -> Floats:
    """q [K, G, D], keys and values [K, n, D] -> [K, G, D]."""
    scores = np.matmul(q, keys.swapaxes(1, 2)) * q.dtype.type(params.scale)  # [K, G, n]
    if params.softcap is not None:
        scores = np.tanh(scores / q.dtype.type(params.softcap)) * q.dtype.type(params.softcap)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(np.matmul(weights, values) / weights.sum(axis=2, keepdims=True))
