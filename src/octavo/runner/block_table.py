"""Block tables of all rows, one per KV group: which block holds which tokens of a row.

Owns: the ids as the scheduler planned them.   Does not own: blocks (core/kv), the batch's own copies.
Invariants: behind the last block given to a row's present sequence every entry is 0, the null block. Entries that a
window has passed may be stale; the batch's copy has 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from octavo.base.units import ceil_div
from octavo.kernels.ops import IntArray
from octavo.proto.kv import KvCacheSpec


class BlockTables:
    """[G] tables of [max_num_seqs, max_blocks] block ids."""

    def __init__(self, spec: KvCacheSpec, *, max_num_seqs: int, max_model_len: int) -> None:
        self.block_size = spec.block_size
        self.windows = tuple(group.window for group in spec.groups)
        """[G] tokens a query of the group sees, itself included; None: all."""
        max_blocks = ceil_div(max_model_len, spec.block_size)
        self._tables: tuple[IntArray, ...] = tuple(np.zeros((max_num_seqs, max_blocks), np.int32) for _ in spec.groups)

    def clear(self, row: int) -> None:
        """Null a row in all groups, before a new sequence enters it."""
        for table in self._tables:
            table[row] = 0

    def write(self, new_blocks: Sequence[tuple[int, int, int, list[int]]]) -> None:
        """Apply StepPlan.new_blocks: (row, group, first logical block, block ids)."""
        for row, group, first, block_ids in new_blocks:
            if len(block_ids) == 1:
                self._tables[group][row, first] = block_ids[0]
            else:
                self._tables[group][row, first : first + len(block_ids)] = block_ids

    def gather(self, rows: IntArray, starts: IntArray, num_blocks: int) -> tuple[IntArray, ...]:
        """Copies [S, num_blocks] of the first blocks of some rows, [G] of them.

        starts [S]: the first position each row computes in this step; what its window has left behind becomes 0.
        """
        tables = []
        for table, window in zip(self._tables, self.windows, strict=True):
            copied = table[rows, :num_blocks]
            if window is not None:
                first_seen = np.maximum(starts - (window - 1), 0) // self.block_size  # [S]
                if first_seen.any():
                    copied[np.arange(num_blocks) < first_seen[:, None]] = 0
            tables.append(copied)
        return tuple(tables)
