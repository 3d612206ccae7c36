import pytest
from fakes.kv import admit, cache, hit_tokens, make_kv, tokens

from octavo.base.errors import InvariantError
from octavo.core.kv.sequence import KvSequence


def test_a_freed_block_comes_back_when_its_last_lease_ends() -> None:
    kv = make_kv()
    seq = KvSequence()
    admit(kv, seq, tokens(4))
    (block,) = seq.block_ids[0]
    first = kv.acquire_lease([block], epoch=0, deadline_s=1.0)
    second = kv.acquire_lease([block], epoch=0, deadline_s=1.0)
    kv.free(seq)
    kv.check_integrity()
    assert kv.num_free_blocks == 9
    kv.release_lease(first)
    assert kv.num_free_blocks == 9
    kv.release_lease(second)
    kv.check_integrity()
    assert kv.num_free_blocks == 10


def test_a_leased_block_is_found_in_the_cache_and_can_be_shared() -> None:
    kv = make_kv()
    prompt = tokens(8)
    seq = KvSequence()
    admit(kv, seq, prompt)
    kv.publish(seq, 8, prompt)
    lease = kv.acquire_lease(seq.block_ids[0], epoch=0, deadline_s=1.0)
    kv.free(seq)
    other = KvSequence()
    assert admit(kv, other, [*prompt, 9]) == 8
    kv.release_lease(lease)
    kv.check_integrity()
    assert kv.num_free_blocks == 7


def test_a_leased_block_still_counts_as_used_by_a_plan() -> None:
    kv = make_kv(num_blocks=3)
    lease = kv.acquire_lease([1], epoch=0, deadline_s=1.0)
    plan = kv.begin()
    assert plan.try_reserve(KvSequence(), tokens(8), computed=0, end=8, step_id=0) is None
    kv.release_lease(lease)
    assert kv.begin().try_reserve(KvSequence(), tokens(8), computed=0, end=8, step_id=0) is not None


def test_a_victim_with_leased_blocks_gives_back_only_the_others() -> None:
    kv = make_kv(num_blocks=4)
    victim = KvSequence()
    admit(kv, victim, tokens(12))
    kv.acquire_lease([victim.block_ids[0][1]], epoch=0, deadline_s=1.0)
    plan = kv.begin()
    plan.free(victim)
    assert plan.num_free_blocks == 2
    assert plan.try_reserve(KvSequence(), tokens(9), computed=0, end=9, step_id=0) is None
    kv.commit(plan)
    kv.check_integrity()
    assert kv.num_free_blocks == 2


def test_an_expired_lease_keeps_its_blocks_until_its_owner_confirms() -> None:
    kv = make_kv()
    lease = kv.acquire_lease([1, 2], epoch=0, deadline_s=5.0)
    assert kv.expire_leases(4.9) == ()
    assert kv.expire_leases(5.0) == (lease,)
    assert kv.expire_leases(6.0) == ()
    assert lease.is_quarantined
    assert kv.num_free_blocks == 8
    kv.check_integrity()
    kv.release_lease(lease)
    assert kv.num_free_blocks == 10


def test_an_expired_lease_ends_when_its_epoch_is_fenced() -> None:
    kv = make_kv()
    lease = kv.acquire_lease([1, 2], epoch=3, deadline_s=5.0)
    kv.expire_leases(9.0)
    assert kv.fence_leases(3) == ()
    assert kv.fence_leases(4) == (lease,)
    assert kv.num_free_blocks == 10


def test_blocks_in_quarantine_are_not_found_in_the_cache() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    assert hit_tokens(kv, tokens(9)) == 8
    kv.acquire_lease([2], epoch=0, deadline_s=1.0)
    kv.expire_leases(1.0)
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 4


def test_a_lease_ends_once() -> None:
    kv = make_kv()
    lease = kv.acquire_lease([1], epoch=0, deadline_s=1.0)
    kv.release_lease(lease)
    with pytest.raises(InvariantError, match="not open"):
        kv.release_lease(lease)


@pytest.mark.parametrize("block", [0, -1, 11])
def test_only_blocks_of_the_pool_can_be_leased(block: int) -> None:
    kv = make_kv()
    with pytest.raises(InvariantError, match="lease of block"):
        kv.acquire_lease([1, block], epoch=0, deadline_s=1.0)
    kv.check_integrity()
    assert kv.num_free_blocks == 10


def test_the_cache_is_not_reset_while_a_lease_is_open() -> None:
    kv = make_kv()
    lease = kv.acquire_lease([1], epoch=0, deadline_s=1.0)
    assert not kv.reset_prefix_cache()
    kv.release_lease(lease)
    assert kv.reset_prefix_cache()
