"""Integrity of KV memory: every count derived a second time, from the block tables, and compared. For tests; O(B)."""

from __future__ import annotations

from collections import Counter

from octavo.base.errors import InvariantError
from octavo.core.kv.leases import LeaseTable
from octavo.core.kv.ledger import Ledger


def check_ledger(ledger: Ledger, leases: LeaseTable) -> None:
    """Raise InvariantError naming the first thing that does not hold."""
    _check_tables(ledger)
    _check_counts(ledger, leases)
    _check_free_list(ledger)
    _check_cache(ledger)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvariantError(message)


def _check_tables(ledger: Ledger) -> None:
    for seq in ledger.holders:
        lengths = {len(table) for table in seq.block_ids}
        _require(len(lengths) == 1, f"tables of different lengths {sorted(lengths)}")
        for group, (table, first) in enumerate(zip(seq.block_ids, seq.first_kept, strict=True)):
            held = [block_idx for block_idx in range(first) if table[block_idx]]
            _require(not held, f"group {group}: logical blocks {held} are held before first_kept={first}")


def _check_counts(ledger: Ledger, leases: LeaseTable) -> None:
    pool = ledger.pool
    references = Counter(block for seq in ledger.holders for table in seq.block_ids for block in table if block)
    holds = Counter(block for lease in leases for block in lease.block_ids)
    for block in range(pool.num_blocks):
        counted = pool.num_references[block]
        _require(counted == references[block], f"block {block}: {counted} references, {references[block]} in tables")
        counted = pool.num_holds[block]
        _require(counted == holds[block], f"block {block}: {counted} holds, {holds[block]} in leases")


def _check_free_list(ledger: Ledger) -> None:
    pool = ledger.pool
    in_list: set[int] = set()
    for block in pool.free_blocks():
        _require(block not in in_list, f"block {block} is twice in the free list")
        in_list.add(block)
    _require(len(in_list) == pool.num_free, f"{len(in_list)} blocks in the free list, num_free={pool.num_free}")
    for block in range(1, pool.num_blocks):
        is_used = bool(pool.num_references[block] or pool.num_holds[block])
        _require(is_used != (block in in_list), f"block {block} is {'used and free' if is_used else 'lost'}")
        _require(pool.is_idle(block) == (block in in_list), f"block {block}: is_idle disagrees with the free list")


def _check_cache(ledger: Ledger) -> None:
    cache = ledger.cache
    for entry in cache.entries():
        _require(0 < entry.block < ledger.pool.num_blocks, f"{entry}: no such block")
        _require(cache.get(entry.group, entry.digest) is entry, f"{entry}: its digest leads elsewhere")
        _require(cache.of_block(entry.block) is entry, f"{entry}: its block leads elsewhere")
    _require(len(cache.entries()) == cache.num_digests, "digests without a block")
    vouched = {entry for seq in ledger.holders for row in seq.unpublished for entry in row if entry is not None}
    for entry in cache.pending_since(-1):
        _require(cache.has(entry), f"{entry}: pending, but not in the cache")
        _require(entry in vouched, f"{entry}: pending, and no sequence will publish it")
    for seq in ledger.holders:
        for group, table in enumerate(seq.block_ids):
            for block_idx, block in enumerate(table):
                found = cache.of_block(block) if block else None
                if found is not None:
                    is_own = found.group == group and found.digest == seq.digests[block_idx]
                    _require(is_own, f"block {block}: holds block {block_idx} of a sequence, the cache says {found}")
