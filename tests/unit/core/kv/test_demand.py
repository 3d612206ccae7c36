import pytest
from fakes.kv import FULL, RECURRENT, admit, cache, gemma_groups, hit_tokens, make_kv, run_step, tokens, window_group

from octavo.core.kv.sequence import KvSequence

# Windows and hybrids.


def test_blocks_behind_the_window_become_null() -> None:
    kv = make_kv(window_group(4))
    seq = KvSequence()
    run_step(kv, seq, tokens(8), 0, 8)
    assert seq.block_ids == [[1, 2]]
    run_step(kv, seq, tokens(9), 8, 9)
    assert seq.block_ids == [[0, 2, 3]]


def test_a_window_goes_on_for_ever_in_a_small_pool() -> None:
    kv = make_kv(window_group(5), num_blocks=4)
    seq = KvSequence()
    for position in range(100):
        assert run_step(kv, seq, tokens(position + 1), position, position + 1) is not None
    (table,) = seq.block_ids
    assert len(table) == 25
    assert not any(table[:-2])
    assert all(table[-2:])


def test_a_step_can_reuse_the_block_it_lets_go() -> None:
    kv = make_kv(window_group(1), num_blocks=2)
    seq = KvSequence()
    run_step(kv, seq, tokens(4), 0, 4)
    reservation = run_step(kv, seq, tokens(5), 4, 5)
    assert reservation is not None
    assert reservation.new_blocks == ((0, 1, [1]),)
    assert seq.block_ids == [[0, 1]]


def test_a_reservation_that_fails_lets_no_window_block_go() -> None:
    kv = make_kv(FULL, window_group(4), num_blocks=5)
    seq = KvSequence()
    run_step(kv, seq, tokens(8), 0, 8)
    assert run_step(kv, seq, tokens(17), 8, 17) is None
    assert seq.block_ids == [[1, 2], [3, 4]]


def test_a_published_block_behind_the_window_can_still_be_hit() -> None:
    kv = make_kv(window_group(4))
    seq = KvSequence()
    for begin in range(0, 16, 4):
        run_step(kv, seq, tokens(16), begin, begin + 4)
        kv.publish(seq, begin + 4, tokens(16))
    assert seq.block_ids[0][:2] == [0, 0]
    assert hit_tokens(kv, tokens(5)) == 4


def test_a_window_block_let_go_in_flight_is_published_when_its_step_returns() -> None:
    kv = make_kv(window_group(4), num_blocks=20)
    seq = KvSequence()
    for begin in (0, 12, 24):
        run_step(kv, seq, tokens(36), begin, begin + 12)
    kv.publish(seq, 12, tokens(36))
    kv.check_integrity()
    kv.free(seq)
    kv.check_integrity()
    assert hit_tokens(kv, tokens(36)) == 12


def test_a_hybrid_hit_takes_only_a_window_from_window_groups() -> None:
    kv = make_kv(FULL, window_group(5), num_blocks=20)
    cache(kv, tokens(16))
    seq = KvSequence()
    assert admit(kv, seq, tokens(17)) == 16
    assert [bool(block) for block in seq.block_ids[0]] == [True] * 5
    assert [bool(block) for block in seq.block_ids[1]] == [False, False, False, True, True]


@pytest.mark.parametrize(("group", "lost", "expected"), [(0, 1, 4), (0, 3, 12), (1, 3, 12), (1, 0, 16), (5, 2, 8)])
def test_one_lost_block_of_six_groups_shortens_the_hit(group: int, lost: int, expected: int) -> None:
    kv = make_kv(*gemma_groups(window=9), num_blocks=60)
    seq = KvSequence()
    admit(kv, seq, tokens(16))
    kv.publish(seq, 16, tokens(16))
    block = seq.block_ids[group][lost]
    kv.free(seq)
    kv.acquire_lease([block], epoch=0, deadline_s=0.0)
    kv.expire_leases(0.0)  # the one way to lose a chosen block
    assert hit_tokens(kv, tokens(17)) == expected


def test_all_groups_of_gemma_get_a_table() -> None:
    kv = make_kv(*gemma_groups(window=9), num_blocks=60)
    reservation = run_step(kv, KvSequence(), tokens(6), 0, 6)
    assert reservation is not None
    assert [(group, first, len(ids)) for group, first, ids in reservation.new_blocks] == [(g, 0, 2) for g in range(6)]
    assert len({block for _, _, ids in reservation.new_blocks for block in ids}) == 12


# Recurrent groups.


def test_a_recurrent_group_holds_one_state_and_the_one_being_written() -> None:
    kv = make_kv(RECURRENT)
    seq = KvSequence()
    run_step(kv, seq, tokens(40), 0, 10)
    assert seq.block_ids == [[0, 0, 1]]
    run_step(kv, seq, tokens(40), 10, 12)
    assert seq.block_ids == [[0, 0, 1]]
    run_step(kv, seq, tokens(40), 12, 18)
    assert seq.block_ids == [[0, 0, 1, 0, 2]]
    run_step(kv, seq, tokens(40), 18, 19)
    assert seq.block_ids == [[0, 0, 0, 0, 2]]


def test_a_state_is_found_only_where_a_step_ended_with_a_block() -> None:
    kv = make_kv(FULL, RECURRENT, num_blocks=20)
    seq = KvSequence()
    for begin, end in ((0, 8), (8, 14), (14, 20), (20, 21)):
        run_step(kv, seq, tokens(21), begin, end)
        kv.publish(seq, end, tokens(21))
    kv.free(seq)
    plan = kv.begin()
    for limit, expected in ((20, 20), (19, 8), (8, 8), (7, 0)):
        hit = plan.find_prefix(KvSequence(), tokens(21), limit)
        assert hit.num_tokens == expected


def test_a_shared_state_is_never_written_again() -> None:
    kv = make_kv(FULL, RECURRENT, num_blocks=20)
    cache(kv, tokens(8))
    seq = KvSequence()
    assert admit(kv, seq, tokens(9)) == 8
    shared, own = seq.block_ids[1][1:]
    assert 0 not in (shared, own)
    assert shared != own


def test_a_state_can_be_picked_up_by_the_next_step_but_not_by_the_same() -> None:
    kv = make_kv(FULL, RECURRENT, num_blocks=20)
    plan = kv.begin()
    assert plan.try_reserve(KvSequence(), tokens(4), computed=0, end=4, step_id=0) is not None
    assert plan.find_prefix(KvSequence(), tokens(5), 4).num_tokens == 0
    kv.commit(plan)
    assert hit_tokens(kv, tokens(5)) == 4
