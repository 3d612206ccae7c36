import struct

import pytest
from fakes.kv import admit, cache, hit_tokens, make_kv, run_step, tokens

from octavo.base.errors import InvariantError
from octavo.core.kv.plan import KvPlan, Reservation
from octavo.core.kv.sequence import KvSequence


def reserve_all(plan: KvPlan, seq: KvSequence, token_ids: list[int]) -> Reservation | None:
    """Admit a sequence with all its tokens, prefix hit included."""
    hit = plan.find_prefix(seq, token_ids, len(token_ids) - 1)
    return plan.try_reserve(seq, token_ids, computed=hit.num_tokens, end=len(token_ids), hit=hit, step_id=0)


# Reserving.


def test_a_first_reservation_lists_the_whole_table() -> None:
    kv = make_kv()
    reservation = run_step(kv, KvSequence(), tokens(9), 0, 9)
    assert reservation is not None
    assert reservation.new_blocks == ((0, 0, [1, 2, 3]),)


def test_a_first_reservation_lists_the_prefix_hit_too() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    reservation = reserve_all(kv.begin(), KvSequence(), tokens(10))
    assert reservation is not None
    assert reservation.new_blocks == ((0, 0, [1, 2, 3]),)


def test_a_step_within_the_last_block_needs_nothing() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(5), 0, 5)
    for computed in (5, 6, 7):
        reservation = run_step(kv, seq, tokens(computed + 1), computed, computed + 1)
        assert reservation is not None
        assert reservation.new_blocks == ()
    assert kv.num_free_blocks == 8


def test_a_step_into_a_new_block_lists_only_that() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(8), 0, 8)
    reservation = run_step(kv, seq, tokens(9), 8, 9)
    assert reservation is not None
    assert reservation.new_blocks == ((0, 2, [3]),)
    assert seq.block_ids == [[1, 2, 3]]


def test_the_last_free_block_is_given_out() -> None:
    kv = make_kv(num_blocks=3)
    assert run_step(kv, KvSequence(), tokens(8), 0, 8) is not None
    assert kv.num_free_blocks == 0


def test_a_reservation_that_lacks_a_block_changes_nothing() -> None:
    kv = make_kv(num_blocks=3)
    seq = KvSequence()
    plan = kv.begin()
    assert plan.try_reserve(seq, tokens(9), computed=0, end=9, step_id=0) is None
    assert plan.num_free_blocks == 2
    assert plan.try_reserve(seq, tokens(9), computed=0, end=8, step_id=0) is not None


@pytest.mark.parametrize(("keep_free", "is_granted"), [(8, True), (9, False)])
def test_keep_free_leaves_blocks_for_others(keep_free: int, is_granted: bool) -> None:
    plan = make_kv().begin()
    reservation = plan.try_reserve(KvSequence(), tokens(8), computed=0, end=8, step_id=0, keep_free=keep_free)
    assert (reservation is not None) is is_granted


def test_shared_idle_blocks_count_as_needed() -> None:
    kv = make_kv(num_blocks=4)
    cache(kv, tokens(8))
    plan = kv.begin()
    seq, prompt = KvSequence(), tokens(9)
    hit = plan.find_prefix(seq, prompt, 8)
    assert plan.try_reserve(seq, prompt, computed=8, end=9, hit=hit, step_id=0, keep_free=1) is None
    assert plan.try_reserve(seq, prompt, computed=8, end=9, hit=hit, step_id=0) is not None
    assert plan.num_free_blocks == 0


def test_shared_blocks_in_use_cost_nothing() -> None:
    kv = make_kv(num_blocks=4)
    holder = KvSequence()
    admit(kv, holder, tokens(8))
    kv.publish(holder, 8, tokens(8))
    assert admit(kv, KvSequence(), tokens(9)) == 8
    assert kv.num_free_blocks == 0


def test_a_plan_that_is_dropped_changes_nothing() -> None:
    kv = make_kv(num_blocks=5)
    seq = cache(kv, tokens(8))
    plan = kv.begin()
    assert reserve_all(plan, seq, tokens(16)) is not None
    assert plan.num_free_blocks == 0
    assert kv.num_free_blocks == 4
    assert seq.block_ids == []
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 8


def test_an_exception_while_reserving_leaves_the_plan_as_it_was() -> None:
    kv = make_kv()
    plan = kv.begin()
    with pytest.raises(struct.error):
        plan.try_reserve(KvSequence(), [0, 1, 2, -1, 4], computed=0, end=5, step_id=0)
    assert plan.num_free_blocks == 10
    assert plan.try_reserve(KvSequence(), tokens(40), computed=0, end=40, step_id=0) is not None
    kv.commit(plan)
    kv.check_integrity()


def test_two_reservations_for_one_sequence_in_a_plan_are_refused() -> None:
    kv = make_kv()
    plan = kv.begin()
    seq = KvSequence()
    plan.try_reserve(seq, tokens(9), computed=0, end=5, step_id=0)
    with pytest.raises(InvariantError, match="twice in one plan"):
        plan.try_reserve(seq, tokens(9), computed=5, end=9, step_id=0)


@pytest.mark.parametrize(("computed", "end"), [(4, 9), (0, 0)])
def test_a_step_that_does_not_continue_an_empty_sequence_is_refused(computed: int, end: int) -> None:
    with pytest.raises(InvariantError, match=f"a step from {computed} to {end}"):
        make_kv().begin().try_reserve(KvSequence(), tokens(9), computed=computed, end=end, step_id=0)


def test_a_step_that_leaves_a_gap_is_refused() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(20), 0, 4)
    with pytest.raises(InvariantError, match="a step from 5 to 9"):
        kv.begin().try_reserve(seq, tokens(20), computed=5, end=9, step_id=0)


# Prefix hits.


def test_one_token_is_always_computed() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    hit = kv.begin().find_prefix(KvSequence(), tokens(8), 8)
    assert hit.num_tokens == 4
    assert hit.losses.last_token == 4


@pytest.mark.parametrize(("max_tokens", "expected"), [(12, 8), (8, 8), (7, 4), (3, 0), (0, 0)])
def test_a_hit_is_whole_blocks_within_max_tokens(max_tokens: int, expected: int) -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    assert kv.begin().find_prefix(KvSequence(), tokens(12), max_tokens).num_tokens == expected


@pytest.mark.parametrize("num_tokens", [0, 1])
def test_the_shortest_sequences_hit_nothing(num_tokens: int) -> None:
    assert make_kv().begin().find_prefix(KvSequence(), tokens(num_tokens), num_tokens).num_tokens == 0


def test_requests_of_one_step_share_blocks_before_they_are_computed() -> None:
    kv = make_kv()
    first, second = KvSequence(), KvSequence()
    plan = kv.begin()
    assert reserve_all(plan, first, tokens(10)) is not None
    assert reserve_all(plan, second, tokens(9)) is not None
    kv.commit(plan)
    kv.check_integrity()
    assert first.block_ids == [[1, 2, 3]]
    assert second.block_ids == [[1, 2, 4]]


def test_a_chunk_that_ends_within_a_block_shares_only_what_is_full() -> None:
    kv = make_kv()
    run_step(kv, KvSequence(), tokens(20), 0, 7)
    assert hit_tokens(kv, tokens(20)) == 4


def test_a_later_chunk_that_fills_the_last_block_makes_it_findable() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(20), 0, 2)
    assert hit_tokens(kv, tokens(20)) == 0
    run_step(kv, seq, tokens(20), 2, 4)
    assert hit_tokens(kv, tokens(20)) == 4


def test_a_block_with_an_unknown_token_is_not_findable() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(7), 0, 7)
    run_step(kv, seq, tokens(7), 7, 8)
    assert hit_tokens(kv, tokens(20)) == 4


def test_blocks_given_out_in_a_plan_are_no_longer_found_in_it() -> None:
    kv = make_kv(num_blocks=4)
    cache(kv, tokens(12))
    plan = kv.begin()
    assert plan.find_prefix(KvSequence(), tokens(12), 11).num_tokens == 8
    plan.try_reserve(KvSequence(), tokens(4, first=50), computed=0, end=4, step_id=0)
    plan.try_reserve(KvSequence(), tokens(4, first=60), computed=0, end=4, step_id=0)
    assert plan.find_prefix(KvSequence(), tokens(12), 11).num_tokens == 4
    assert hit_tokens(kv, tokens(12)) == 8


def test_blocks_shared_in_a_plan_are_not_given_out_in_it() -> None:
    kv = make_kv(num_blocks=4)
    cache(kv, tokens(8))
    plan = kv.begin()
    assert reserve_all(plan, KvSequence(), tokens(9)) is not None
    assert plan.try_reserve(KvSequence(), tokens(4, first=50), computed=0, end=4, step_id=0) is None


def test_a_hit_whose_blocks_were_given_out_meanwhile_is_refused() -> None:
    kv = make_kv(num_blocks=4)
    cache(kv, tokens(8))
    plan = kv.begin()
    seq = KvSequence()
    hit = plan.find_prefix(seq, tokens(9), 8)
    plan.try_reserve(KvSequence(), tokens(8, first=50), computed=0, end=8, step_id=0)
    with pytest.raises(InvariantError, match="find it again"):
        plan.try_reserve(seq, tokens(9), computed=8, end=9, hit=hit, step_id=0)


def test_a_request_that_does_not_read_the_cache_still_fills_it() -> None:
    kv = make_kv()
    cache(kv, tokens(4))
    run_step(kv, KvSequence(), tokens(9), 0, 9)
    assert hit_tokens(kv, tokens(9)) == 8


# Victims.


def test_the_blocks_of_a_victim_are_there_at_once() -> None:
    kv = make_kv(num_blocks=4)
    victim, winner = KvSequence(), KvSequence()
    admit(kv, victim, tokens(12))
    plan = kv.begin()
    assert plan.try_reserve(winner, tokens(12, first=50), computed=0, end=12, step_id=1) is None
    assert plan.free(victim) == ()
    assert plan.try_reserve(winner, tokens(12, first=50), computed=0, end=12, step_id=1) is not None
    kv.commit(plan)
    kv.check_integrity()
    assert victim.block_ids == []
    assert sorted(winner.block_ids[0]) == [1, 2, 3]


def test_a_victim_reserved_for_in_the_same_plan_gives_back_those_blocks_too() -> None:
    kv = make_kv(num_blocks=5)
    victim = KvSequence()
    admit(kv, victim, tokens(8))
    plan = kv.begin()
    assert plan.try_reserve(victim, tokens(9), computed=8, end=9, step_id=1) is not None
    plan.free(victim)
    assert plan.num_free_blocks == 4
    kv.commit(plan)
    kv.check_integrity()
    assert kv.num_free_blocks == 4


def test_a_victim_can_come_back_in_the_same_plan() -> None:
    kv = make_kv()
    victim = KvSequence()
    admit(kv, victim, tokens(8))
    kv.publish(victim, 8, tokens(8))
    plan = kv.begin()
    plan.free(victim)
    assert reserve_all(plan, victim, tokens(9)) is not None
    kv.commit(plan)
    kv.check_integrity()
    assert victim.block_ids == [[1, 2, 3]]


def test_a_victim_with_unpublished_blocks_leaves_nothing_in_the_cache() -> None:
    kv = make_kv()
    victim = KvSequence()
    admit(kv, victim, tokens(8))
    plan = kv.begin()
    plan.free(victim)
    assert plan.find_prefix(KvSequence(), tokens(9), 8).num_tokens == 0
    kv.commit(plan)
    kv.check_integrity()
    assert kv.num_cached_blocks == 0


def test_freeing_a_sequence_without_blocks_or_twice_does_nothing() -> None:
    kv = make_kv()
    seq = KvSequence()
    plan = kv.begin()
    assert plan.free(seq) == ()
    reserve_all(plan, seq, tokens(8))
    plan.free(seq)
    assert plan.free(seq) == ()
    assert plan.num_free_blocks == 10
    kv.commit(plan)
    kv.check_integrity()


def test_freeing_a_sequence_frees_those_that_built_on_its_new_blocks() -> None:
    kv = make_kv()
    first, second, third, other = (KvSequence() for _ in range(4))
    plan = kv.begin()
    reserve_all(plan, first, tokens(8))
    reserve_all(plan, second, tokens(13))
    reserve_all(plan, third, tokens(14))
    reserve_all(plan, other, tokens(8, first=50))
    assert set(plan.free(first)) == {second, third}
    assert plan.num_free_blocks == 8
    kv.commit(plan)
    kv.check_integrity()
    assert other.capacity == 8
    assert first.capacity == second.capacity == third.capacity == 0


def test_those_that_built_on_blocks_of_steps_in_flight_stay() -> None:
    kv = make_kv()
    first, second = KvSequence(), KvSequence()
    admit(kv, first, tokens(8))
    plan = kv.begin()
    reserve_all(plan, second, tokens(9))
    assert plan.free(first) == ()
    kv.commit(plan)
    kv.check_integrity()
    kv.publish(second, 9, tokens(9))
    kv.free(second)
    assert hit_tokens(kv, tokens(9)) == 8


def test_a_plan_is_committed_once_and_on_the_state_it_began_with() -> None:
    kv = make_kv()
    plan = kv.begin()
    kv.commit(plan)
    with pytest.raises(InvariantError, match="committed twice"):
        kv.commit(plan)
    late = kv.begin()
    cache(kv, tokens(4))
    with pytest.raises(InvariantError, match="manager was changed"):
        kv.commit(late)
