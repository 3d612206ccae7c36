"""KV memory of the cpu back end, as a `KvCache`.

Owns: the spec and the canonical page's shape.   Does not own: the bytes and their layout (native/, decision 0003).
"""

from __future__ import annotations

import numpy as np

from octavo import _native
from octavo.base.errors import ShapeError
from octavo.kernels.ops import FloatArray
from octavo.proto.kv import KvCacheSpec


class CpuKvCache:
    """All blocks of all groups in one anonymous mapping of huge pages, zero until written."""

    def __init__(self, spec: KvCacheSpec, ops: _native.Backend) -> None:
        """Raises ShapeError for a block size other than 16 and multiples of 32, or a head size odd or over 1024."""
        self.spec = spec
        self._ops = ops
        self.native = _native.KvCache(
            spec.dtype,
            spec.num_blocks,
            spec.block_size,
            spec.num_kv_heads,
            spec.head_dim,
            [list(group.layers) for group in spec.groups],
        )
        self._page_shape = (spec.layers_per_page, 2, spec.block_size, spec.num_kv_heads, spec.head_dim)

    def read_block(self, block_id: int) -> FloatArray:
        """The canonical page [layer in group][K|V][P][K heads][D] as float32."""
        page = np.empty(self._page_shape, np.float32)
        self._ops.read_block(self.native, block_id, page)
        return page

    def write_block(self, block_id: int, page: FloatArray) -> None:
        """Replace a page, rounding to the cache's dtype. Raises ShapeError."""
        if page.shape != self._page_shape:
            raise ShapeError(f"page is {page.shape}; a block of this cache is {self._page_shape}")
        self._ops.write_block(self.native, block_id, np.ascontiguousarray(page, np.float32))
