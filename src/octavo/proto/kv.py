"""The shape of KV memory, as the planner, the runner and the kernels agree on it.

A *block* holds `block_size` tokens of one *group* of layers. All groups have equal page bytes and share one pool of
blocks; each group has its own block table. Block 0 is the null block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from octavo.base.units import ceil_div

GroupKind = Literal["full", "sliding_window", "recurrent"]


class KvGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Layers that share one block table.

    `layers` holds model layer indices; a page is the KV of all of them. Groups that were dealt short are padded to
    `layers_per_page` (see KvCacheSpec), their last places stay unused.
    """

    kind: GroupKind
    layers: tuple[int, ...]
    window: int | None = None
    """Tokens a query sees, itself included; for sliding_window."""


class KvCacheSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to allocate and to address the cache."""

    groups: tuple[KvGroup, ...]
    block_size: int
    """Tokens per block (P)."""
    num_blocks: int
    """Blocks in the pool, the null block included (B)."""
    num_kv_heads: int
    head_dim: int
    dtype: Literal["float32", "bfloat16"]

    @property
    def layers_per_page(self) -> int:
        """Layers a page has room for: that of the largest group."""
        return max(len(group.layers) for group in self.groups)

    @property
    def page_bytes(self) -> int:
        """Bytes of one block: layers_per_page x (K and V) x heads x tokens x head size."""
        itemsize = 4 if self.dtype == "float32" else 2
        return self.layers_per_page * 2 * self.num_kv_heads * self.block_size * self.head_dim * itemsize


def deal_layers(kinds: Sequence[str], window: int | None) -> tuple[KvGroup, ...]:
    """Deal layers into groups of one kind and of near-equal size, so that all share one pool of pages.

    The smallest kind sets the size: 3 full and 15 window layers make one full and five window groups of 3. With one
    kind only there is one group. Source: hybrid KV groups of vLLM V1 (facts only).
    """
    by_kind: dict[str, list[int]] = {}
    for layer, kind in enumerate(kinds):
        by_kind.setdefault(kind, []).append(layer)
    if not by_kind:
        return ()
    size = min(len(layers) for layers in by_kind.values())
    groups: list[KvGroup] = []
    for kind in sorted(by_kind):  # "full" before "recurrent" before "sliding_window"
        layers = by_kind[kind]
        for index in range(ceil_div(len(layers), size)):
            groups.append(
                KvGroup(
                    kind=kind,  # type: ignore[arg-type]
                    layers=tuple(layers[index * size : (index + 1) * size]),
                    window=window if kind == "sliding_window" else None,
                )
            )
    return tuple(groups)


def peak_blocks(groups: Sequence[KvGroup], num_tokens: int, *, block_size: int, max_chunk: int | None) -> int:
    """Most blocks that one sequence of `num_tokens` holds at a time, over all groups.

    max_chunk: most tokens of it that one step computes; None: any number. Memory is dealt out and requests are admitted
    by this one function, so that what was promised at the start can be kept.
    """
    return sum(_peak_of(group, num_tokens, block_size, max_chunk) for group in groups)


def _peak_of(group: KvGroup, num_tokens: int, block_size: int, max_chunk: int | None) -> int:
    whole = ceil_div(num_tokens, block_size)
    if group.kind == "recurrent":
        return min(2, whole)  # the state that a step reads and the one that it stores
    if group.window is None or max_chunk is None:
        return whole
    # A step holds window - 1 + max_chunk positions; so many touch one block more when they start badly.
    span = group.window - 1 + max_chunk
    return min(whole, ceil_div(span - 1, block_size) + 1)
