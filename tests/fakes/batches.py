"""Forward batches built by hand: sequences that own consecutive blocks, computed from any position on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from octavo.base.units import ceil_div
from octavo.kernels.ops import ForwardBatch, GroupBatch
from octavo.models import Model
from octavo.proto.kv import KvCacheSpec


def cache_spec(model: Model, *, block_size: int, num_blocks: int, dtype: str = "float32") -> KvCacheSpec:
    """The cache that a model needs."""
    return KvCacheSpec(
        groups=model.kv_groups,
        block_size=block_size,
        num_blocks=num_blocks,
        num_kv_heads=model.spec.num_kv_heads,
        head_dim=model.spec.head_dim,
        dtype=dtype,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Chunk:
    """Tokens start .. start + len(tokens) of sequence number `seq`; `seq` also says which blocks it owns."""

    seq: int
    start: int
    tokens: Sequence[int]


def forward_batch(chunks: Sequence[Chunk], spec: KvCacheSpec, *, max_blocks: int) -> ForwardBatch:
    """One step over some chunks, with logits wanted at every token.

    Sequence s owns in group g the blocks 1 + (s * G + g) * max_blocks and following, highest id first, so that
    logical and physical order differ. Blocks that a window has left behind are the null block.
    """
    lengths = [chunk.start + len(chunk.tokens) for chunk in chunks]
    positions = np.concatenate([np.arange(c.start, end) for c, end in zip(chunks, lengths, strict=True)])
    groups = []
    for group_idx, group in enumerate(spec.groups):
        table = np.zeros((len(chunks), max_blocks), np.int32)
        slots = []
        for row, (chunk, end) in enumerate(zip(chunks, lengths, strict=True)):
            first_id = 1 + (chunk.seq * len(spec.groups) + group_idx) * max_blocks
            owned = np.arange(first_id, first_id + max_blocks)[::-1]
            first_seen = 0 if group.window is None else max(0, chunk.start - group.window + 1)
            used = slice(first_seen // spec.block_size, ceil_div(end, spec.block_size))
            table[row, used] = owned[used]
            here = np.arange(chunk.start, end)
            slots.append(owned[here // spec.block_size] * spec.block_size + here % spec.block_size)
        groups.append(GroupBatch(slots=np.concatenate(slots).astype(np.int32), block_table=table))
    tokens = np.concatenate([np.asarray(chunk.tokens, np.int32) for chunk in chunks])
    return ForwardBatch(
        tokens=tokens,
        positions=positions.astype(np.int32),
        query_start=np.cumsum([0, *(len(chunk.tokens) for chunk in chunks)]).astype(np.int32),
        seq_lens=np.array(lengths, np.int32),
        groups=tuple(groups),
        logit_rows=np.arange(len(tokens), dtype=np.int32),
    )
