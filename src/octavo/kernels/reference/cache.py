"""Paged KV memory of the reference back end: [B, layers per page, K|V, P, K heads, D], the canonical page itself.

Owns: the bytes and where a layer's pages are.   Does not own: which block belongs to whom (core/kv).
Invariant: every value is representable in the cache's dtype; the pool is zero until written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from octavo.base.errors import ShapeError
from octavo.kernels.ops import IntArray
from octavo.kernels.reference.precision import Float32s, Floats, store
from octavo.proto.kv import KvCacheSpec


class ReferenceKvCache:
    """All blocks of all groups in one array."""

    def __init__(self, spec: KvCacheSpec) -> None:
        self.spec = spec
        page = (spec.layers_per_page, 2, spec.block_size, spec.num_kv_heads, spec.head_dim)
        self._pages: Float32s = np.zeros((spec.num_blocks, *page), np.float32)
        self._place = {
            layer: (group_idx, place)
            for group_idx, group in enumerate(spec.groups)
            for place, layer in enumerate(group.layers)
        }

    def group_of(self, layer: int) -> int:
        """Index of the group that a model layer belongs to."""
        return self._place[layer][0]

    def write(self, layer: int, slots: IntArray, keys: Floats, values: Floats) -> None:
        """Store K and V [T, K heads, D] of a model layer at slots [T], rounded to the cache's dtype."""
        block_ids, offsets = np.divmod(slots, self.spec.block_size)
        for kind, states in enumerate((keys, values)):
            self._view(layer, kind)[block_ids, offsets] = store(states, self.spec.dtype)

    def gather(self, layer: int, block_ids: IntArray) -> tuple[Float32s, Float32s]:
        """K and V of some blocks of a model layer, in that order: [K heads, len(block_ids) * P, D] each."""
        shape = (-1, self.spec.num_kv_heads, self.spec.head_dim)
        keys, values = (self._view(layer, kind)[block_ids].reshape(shape).swapaxes(0, 1) for kind in (0, 1))
        return keys, values

    def read_block(self, block_id: int) -> Float32s:
        """A copy of the canonical page [layer in group][K|V][P][K heads][D]."""
        return np.array(self._pages[block_id])

    def write_block(self, block_id: int, page: Float32s) -> None:
        """Replace a page, rounding to the cache's dtype. Raises ShapeError."""
        if page.shape != self._pages.shape[1:]:
            raise ShapeError(f"page is {page.shape}; a block of this cache is {self._pages.shape[1:]}")
        self._pages[block_id] = store(page, self.spec.dtype)

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy whole pages (source, destination), one after the other."""
        for source, destination in pairs:
            self._pages[destination] = self._pages[source]

    def _view(self, layer: int, kind: int) -> Float32s:
        return self._pages[:, self._place[layer][1], kind]  # [B, P, K, D]
