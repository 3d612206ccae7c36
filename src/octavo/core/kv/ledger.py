"""The ledger: the one place where pool, cache and sequences change, and change together.

Owns: applying decisions. Does not own: making them (`plan.py`), or when a step has returned (`manager.py`).

Invariants after each call: a sequence's non-null entries are references in the pool; an entry of the cache belongs to a
block that is referenced, leased or idle with its content intact; a block given out anew has no entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from octavo.core.kv.demand import StepDemand
from octavo.core.kv.pool import BlockPool
from octavo.core.kv.prefix import CacheEntry, EntryRow, PrefixCache, PrefixHit
from octavo.core.kv.sequence import KvSequence


class ReserveChange(msgspec.Struct, frozen=True, eq=False):
    """What one reservation does."""

    demand: StepDemand
    new_ids: list[list[int]]
    """By group: entries to append to its table, 0 where nothing is stored."""
    new_rows: list[list[CacheEntry | None]]
    """By further full block: the entries that become pending, by group."""
    dependants: list[ReserveChange]
    """Reservations of the same plan that share blocks which this one's step fills."""

    @property
    def seq(self) -> KvSequence:
        return self.demand.seq

    def tables(self) -> list[list[int]]:
        """The block table as it will be."""
        demand = self.demand
        if demand.starts_empty:
            tables = demand.hit.tables(len(self.new_ids))
        else:
            tables = [list(table) for table in demand.seq.block_ids]
            for group, block_idx in demand.released:
                tables[group][block_idx] = 0
        return [table + ids for table, ids in zip(tables, self.new_ids, strict=True)]

    def rows(self) -> list[EntryRow]:
        """The entries that will not be published, or some more."""
        return [*(self.demand.hit.rows if self.demand.starts_empty else self.demand.seq.unpublished), *self.new_rows]


class FreeChange(msgspec.Struct, frozen=True, eq=False):
    """All blocks of a sequence come back."""

    seq: KvSequence


class Ledger:
    """Pool, cache and the sequences that hold blocks."""

    def __init__(self, pool: BlockPool, cache: PrefixCache, block_size: int) -> None:
        self._block_size = block_size
        self.pool = pool
        self.cache = cache
        self.holders: set[KvSequence] = set()

    def apply(self, changes: Sequence[ReserveChange | FreeChange]) -> None:
        """Apply a plan's changes in the order in which they were decided."""
        for change in changes:
            if isinstance(change, ReserveChange):
                self._reserve(change)
            else:
                self.free(change.seq)

    def _reserve(self, change: ReserveChange) -> None:
        demand, seq = change.demand, change.seq
        if demand.starts_empty:
            self._start(seq, demand.hit, num_groups=len(change.new_ids))
        for group, block_idx in demand.released:
            block = seq.block_ids[group][block_idx]
            seq.block_ids[group][block_idx] = 0
            self.pool.release(block, is_cached=self.cache.of_block(block) is not None)
        for table, block_ids in zip(seq.block_ids, change.new_ids, strict=True):
            for block in filter(None, block_ids):
                self._take(block)
            table.extend(block_ids)
        for row in change.new_rows:
            for entry in filter(None, row):
                self.cache.insert(entry)
            seq.unpublished.append(row)
        seq.first_kept = demand.first_kept
        seq.capacity = demand.num_blocks * self._block_size
        seq.release_at = demand.release_at

    def _start(self, seq: KvSequence, hit: PrefixHit, *, num_groups: int) -> None:
        """Give an empty sequence its prefix hit."""
        seq.block_ids = hit.tables(num_groups)
        for row in hit.rows:
            for entry in filter(None, row):
                self.pool.reference(entry.block)
        seq.num_published = hit.num_published
        seq.unpublished.extend(hit.rows[seq.num_published :])
        self.holders.add(seq)

    def _take(self, block: int) -> None:
        entry = self.cache.of_block(block)
        if entry is not None:
            self.cache.drop(entry)
        self.pool.reference(block)

    def free(self, seq: KvSequence) -> None:
        """Give back all blocks, tail first; pending entries that nobody else vouches for are forgotten."""
        for block in tail_first(seq.block_ids):
            self.pool.release(block, is_cached=self.cache.of_block(block) is not None)
        for row in seq.unpublished:
            for entry in filter(None, row):
                if entry.is_pending and not self.pool.num_references[entry.block]:
                    self.forget(entry)
        self.holders.discard(seq)
        seq.forget_blocks()

    def retract(self, doubtful: set[CacheEntry]) -> set[KvSequence]:
        """Forget pending entries and all that was computed from them; returns the sequences that hold any of these."""
        tainted: set[KvSequence] = set()
        while True:
            more = {seq for seq in self.holders - tainted if not doubtful.isdisjoint(_pending_of(seq))}
            if not more:
                break
            tainted |= more
            for seq in more:
                doubtful.update(_pending_of(seq))
        for entry in doubtful:
            self.forget(entry)
        return tainted

    def forget(self, entry: CacheEntry) -> None:
        """Take an entry out of the cache, if it is still there; an idle block goes to the front of the free list."""
        if self.cache.has(entry):
            self.cache.drop(entry)
            if self.pool.is_idle(entry.block):
                self.pool.move_to_front(entry.block)


def _pending_of(seq: KvSequence) -> Iterator[CacheEntry]:
    return (entry for row in seq.unpublished for entry in row if entry is not None and entry.is_pending)


def tail_first(tables: Sequence[Sequence[int]]) -> list[int]:
    """The blocks of a sequence in the order in which they are to be freed: last ones first, null entries left out."""
    return [block for row in zip(*map(reversed, tables), strict=True) for block in row if block]
