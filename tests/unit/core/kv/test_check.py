from collections.abc import Callable

import pytest
from fakes.kv import P, tokens

from octavo.base.errors import InvariantError
from octavo.core.kv.check import check_ledger
from octavo.core.kv.groups import make_rules
from octavo.core.kv.hashing import HashChain
from octavo.core.kv.leases import LeaseTable
from octavo.core.kv.ledger import Ledger
from octavo.core.kv.overlay import PoolOverlay
from octavo.core.kv.plan import KvLayout, KvPlan
from octavo.core.kv.pool import BlockPool
from octavo.core.kv.prefix import CacheEntry, PrefixCache
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup


@pytest.fixture
def ledger() -> Ledger:
    """A sequence with blocks 1 and 2, of which the first is full and pending; 3 and 4 are free."""
    ledger = Ledger(BlockPool(5), PrefixCache(1), P)
    rules = make_rules([KvGroup(kind="full", layers=(0,))], P)
    plan = KvPlan(KvLayout(rules, P, HashChain(block_size=P, hash_key=b"")), PoolOverlay(ledger.pool, ledger.cache), 0)
    assert plan.try_reserve(KvSequence(), tokens(6), computed=0, end=6, step_id=0) is not None
    ledger.apply(plan.changes)
    return ledger


def holder(ledger: Ledger) -> KvSequence:
    return next(iter(ledger.holders))


def lose_a_reference(ledger: Ledger) -> None:
    ledger.pool.num_references[2] += 1


def count_a_lease_that_is_not_there(ledger: Ledger) -> None:
    ledger.pool.hold(3)


def free_what_is_in_use(ledger: Ledger) -> None:
    ledger.pool.release(2, is_cached=False)
    ledger.pool.num_references[2] = 1


def lose_a_block(ledger: Ledger) -> None:
    ledger.pool.reference(4)
    ledger.pool.num_references[4] = 0


def forget_to_count(ledger: Ledger) -> None:
    ledger.pool.num_free -= 1


def let_tables_differ(ledger: Ledger) -> None:
    holder(ledger).block_ids.append([])


def keep_what_is_behind(ledger: Ledger) -> None:
    holder(ledger).first_kept = [1]


def leave_a_pending_entry_behind(ledger: Ledger) -> None:
    ledger.cache.insert(CacheEntry(0, b"digest", 3, step_id=0))


def cache_other_content(ledger: Ledger) -> None:
    ledger.cache.insert(CacheEntry(0, b"digest", 2, step_id=0, is_pending=False))
    holder(ledger).digests.append(b"another")


def cache_a_digest_twice(ledger: Ledger) -> None:
    ledger.cache.insert(CacheEntry(0, holder(ledger).digests[0], 3, step_id=0, is_pending=False))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose_a_reference, "block 2: 2 references, 1 in tables"),
        (count_a_lease_that_is_not_there, "block 3: 1 holds, 0 in leases"),
        (free_what_is_in_use, "block 2 is used and free"),
        (lose_a_block, "block 4 is lost"),
        (forget_to_count, "2 blocks in the free list, num_free=1"),
        (let_tables_differ, "tables of different lengths"),
        (keep_what_is_behind, "held before first_kept"),
        (leave_a_pending_entry_behind, "no sequence will publish it"),
        (cache_other_content, "block 2: holds block 1 of a sequence"),
        (cache_a_digest_twice, "its digest leads elsewhere"),
    ],
)
def test_each_kind_of_damage_is_named(ledger: Ledger, damage: Callable[[Ledger], None], message: str) -> None:
    check_ledger(ledger, LeaseTable())
    damage(ledger)
    with pytest.raises(InvariantError, match=message):
        check_ledger(ledger, LeaseTable())
