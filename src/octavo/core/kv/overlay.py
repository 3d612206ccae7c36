"""PoolOverlay: how pool and cache would look after the decisions made so far in a plan.

Owns: the differences. Reads pool and cache, changes neither. Block ids are final: the pool's free list is read in its
own order, so what is taken here is what the commit gives out.
"""

from __future__ import annotations

from octavo.core.kv.pool import BlockPool
from octavo.core.kv.prefix import CacheEntry, PrefixCache


class PoolOverlay:
    """Reference counts, free blocks and cache entries as they would be."""

    def __init__(self, pool: BlockPool, cache: PrefixCache) -> None:
        self.num_free = pool.num_free
        self._pool = pool
        self._cache = cache
        self._idle_in_order = pool.free_blocks()
        self._references: dict[int, int] = {}
        """Counts that differ from the pool's."""
        self._gone_from_list: set[int] = set()
        """Idle in the pool, shared or given out here."""
        self._front: list[int] = []
        """Came back here without content; the last is given out first."""
        self._back: dict[int, None] = {}
        """Came back here with content, in order."""
        self._dropped: set[CacheEntry] = set()
        self._new_by_digest: dict[tuple[int, bytes], CacheEntry] = {}
        self._new_by_block: dict[int, CacheEntry] = {}

    def num_references(self, block: int) -> int:
        """Sequences that would hold the block."""
        return self._references.get(block, self._pool.num_references[block])

    def is_idle(self, block: int) -> bool:
        """Whether the block would be in the free list."""
        return not self.num_references(block) and not self._pool.num_holds[block]

    def is_freed_by_release(self, block: int) -> bool:
        """Whether the block would be in the free list with one sequence less."""
        return self.num_references(block) == 1 and not self._pool.num_holds[block]

    def look_up(self, group: int, digest: bytes) -> CacheEntry | None:
        """The entry that would store this digest."""
        entry = self._cache.get(group, digest)
        if entry is not None and entry not in self._dropped:
            return entry
        return self._new_by_digest.get((group, digest))

    def has(self, entry: CacheEntry) -> bool:
        """Whether the entry would be in the cache."""
        return self._of_block(entry.block) is entry

    def take(self) -> int:
        """Give out the next free block; its entry, if any, is dropped. There must be one (`num_free`)."""
        block = self._pop_free()
        entry = self._of_block(block)
        if entry is not None:
            self._drop(entry)
        self._references[block] = 1
        self.num_free -= 1
        return block

    def share(self, block: int) -> None:
        """One more sequence holds a block that has content."""
        if self.is_idle(block):
            self.num_free -= 1
            if block in self._back:
                del self._back[block]
            else:
                self._gone_from_list.add(block)
        self._references[block] = self.num_references(block) + 1

    def release(self, block: int) -> None:
        """One sequence less holds the block; content stays, also what is still pending."""
        self._references[block] = self.num_references(block) - 1
        if self.is_idle(block):
            self.num_free += 1
            if self._of_block(block) is None:
                self._front.append(block)
            else:
                self._back[block] = None

    def try_add(self, group: int, digest: bytes, block: int, step_id: int) -> CacheEntry | None:
        """A new entry, pending on the step being planned; None if the digest or the block has one already."""
        if self.look_up(group, digest) is not None or self._of_block(block) is not None:
            return None
        entry = CacheEntry(group, digest, block, step_id=step_id)
        self._new_by_digest[group, digest] = entry
        self._new_by_block[block] = entry
        return entry

    def drop_if_unshared(self, entry: CacheEntry) -> None:
        """An entry whose block nobody holds leaves the cache."""
        if self.has(entry) and not self.num_references(entry.block):
            self._drop(entry)

    def _drop(self, entry: CacheEntry) -> None:
        if self._new_by_block.get(entry.block) is entry:
            del self._new_by_block[entry.block]
            del self._new_by_digest[entry.group, entry.digest]
        else:
            self._dropped.add(entry)

    def _of_block(self, block: int) -> CacheEntry | None:
        entry = self._new_by_block.get(block)
        if entry is None:
            entry = self._cache.of_block(block)
            if entry in self._dropped:
                return None
        return entry

    def _pop_free(self) -> int:
        if self._front:
            return self._front.pop()
        for block in self._idle_in_order:
            if block not in self._gone_from_list:
                return block
        block = next(iter(self._back))
        del self._back[block]
        return block
