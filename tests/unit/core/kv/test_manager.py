from itertools import pairwise

import pytest
from fakes.kv import (
    FULL,
    RECURRENT,
    P,
    admit,
    cache,
    gemma_groups,
    hit_tokens,
    make_kv,
    run_step,
    tokens,
    window_group,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.base.errors import CapacityError, InvariantError
from octavo.core.kv.hashing import HashExtra
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup

# Publishing.


def test_decoded_blocks_are_found_once_their_step_has_returned() -> None:
    kv = make_kv()
    seq, known = KvSequence(), tokens(7)
    run_step(kv, seq, known, 0, 7)
    kv.publish(seq, 7, known)
    run_step(kv, seq, known, 7, 8, step_id=1)  # position 7 is sampled by step 0, but nobody has told the planner yet
    known.append(7)
    assert hit_tokens(kv, tokens(9)) == 4
    kv.publish(seq, 8, known)
    assert hit_tokens(kv, tokens(9)) == 8


def test_a_finished_sequence_stays_in_the_cache() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    assert kv.num_free_blocks == 10
    assert kv.num_cached_blocks == 2
    assert hit_tokens(kv, tokens(9)) == 8


def test_publishing_twice_or_less_changes_nothing() -> None:
    kv = make_kv()
    seq = KvSequence()
    admit(kv, seq, tokens(9))
    for num_tokens in (9, 9, 4, 8):
        kv.publish(seq, num_tokens, tokens(9))
        kv.check_integrity()
    assert seq.num_published == 2


def test_a_sequence_goes_on_with_its_own_block_where_an_equal_one_is_cached() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    seq = KvSequence()
    assert admit(kv, seq, tokens(8)) == 4  # its last token must be computed, so its second block is its own
    kv.publish(seq, 8, tokens(8))
    kv.check_integrity()
    assert kv.num_cached_blocks == 2
    assert seq.block_ids == [[1, 3]]


def test_an_equal_block_takes_the_place_of_one_that_was_evicted() -> None:
    kv = make_kv(num_blocks=5)
    cache(kv, tokens(8))
    seq = KvSequence()
    plan = kv.begin()
    assert plan.try_reserve(seq, tokens(9), computed=0, end=8, step_id=1) is not None
    kv.commit(plan)
    admit(kv, KvSequence(), tokens(8, first=50))  # evicts the cached copies
    kv.publish(seq, 8, tokens(9))
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 8


def test_positions_without_blocks_cannot_be_published() -> None:
    kv = make_kv()
    with pytest.raises(InvariantError, match="publish of 8 tokens"):
        kv.publish(KvSequence(), 8, tokens(8))


# Separation.


def test_salts_and_extras_share_nothing() -> None:
    kv = make_kv(num_blocks=30)
    prompt = tokens(9)
    lora = (HashExtra(tag="lora", value=b"a"),)
    makers = [
        KvSequence,
        lambda: KvSequence(salt="a"),
        lambda: KvSequence(salt="b"),
        lambda: KvSequence(extras=lora),
        lambda: KvSequence(salt="a", extras=lora),
    ]
    assert [admit(kv, make(), prompt) for make in makers] == [0] * 5
    assert [admit(kv, make(), prompt) for make in makers] == [8] * 5


def test_without_prefix_caching_nothing_is_hashed_or_kept() -> None:
    kv = make_kv(enable_prefix_caching=False)
    seq = cache(kv, tokens(8))
    assert seq.digests == []
    assert kv.num_cached_blocks == 0
    assert hit_tokens(kv, tokens(9)) == 0


# Ends, aborts, failed steps.


def test_an_aborted_sequence_leaves_no_unpublished_block_behind() -> None:
    kv = make_kv()
    seq = KvSequence()
    admit(kv, seq, tokens(12))
    kv.publish(seq, 4, tokens(12))
    kv.free(seq)
    kv.check_integrity()
    assert kv.num_free_blocks == 10
    assert hit_tokens(kv, tokens(12)) == 4


def test_those_who_share_blocks_of_an_aborted_sequence_publish_them() -> None:
    kv = make_kv()
    first, second = KvSequence(), KvSequence()
    admit(kv, first, tokens(8))
    assert admit(kv, second, tokens(9), step_id=1) == 8
    kv.free(first)
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 8
    kv.publish(second, 9, tokens(9))
    kv.free(second)
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 8


def test_freeing_twice_is_harmless() -> None:
    kv = make_kv()
    seq = KvSequence()
    admit(kv, seq, tokens(8))
    kv.free(seq)
    kv.free(seq)
    kv.check_integrity()
    assert kv.num_free_blocks == 10


def test_a_failed_step_and_those_behind_it_leave_nothing_in_the_cache() -> None:
    kv = make_kv()
    first, second, third = KvSequence(), KvSequence(), KvSequence()
    admit(kv, first, tokens(4), step_id=1)
    kv.publish(first, 4, tokens(4))
    admit(kv, second, tokens(9), step_id=2)
    admit(kv, third, tokens(13), step_id=3)
    kv.void_step(2)
    assert hit_tokens(kv, tokens(13)) == 4
    kv.free(second)
    kv.free(third)
    kv.check_integrity()
    assert hit_tokens(kv, tokens(13)) == 4
    assert kv.num_cached_blocks == 1


def test_a_failed_step_spares_those_before_it() -> None:
    kv = make_kv()
    first, second = KvSequence(), KvSequence()
    admit(kv, first, tokens(8), step_id=1)
    admit(kv, second, tokens(13), step_id=2)
    kv.void_step(2)
    kv.free(second)
    kv.publish(first, 8, tokens(8))
    kv.check_integrity()
    assert hit_tokens(kv, tokens(13)) == 8


@pytest.mark.parametrize("is_owner_gone", [False, True])
def test_a_retracted_share_taints_all_that_was_computed_from_it_and_nothing_else(is_owner_gone: bool) -> None:
    kv = make_kv(num_blocks=16)
    before, owner, sharer, further, stranger = (KvSequence() for _ in range(5))
    admit(kv, before, tokens(4), step_id=1)
    kv.publish(before, 4, tokens(4))
    admit(kv, owner, tokens(9), step_id=2)
    admit(kv, stranger, tokens(4) + [7] * 4, step_id=2)
    admit(kv, sharer, tokens(13), step_id=2)
    assert admit(kv, further, tokens(17), step_id=3) == 12
    if is_owner_gone:
        kv.free(owner)
    assert kv.retract(owner, 2) - {owner} == {sharer, further}
    assert hit_tokens(kv, tokens(17)) == 4
    assert hit_tokens(kv, [*tokens(4), *[7] * 4, 0]) == 8
    for seq in (owner, sharer, further):
        kv.free(seq)
    kv.check_integrity()
    assert kv.num_cached_blocks == 2


def test_void_blocks_are_the_first_to_be_reused() -> None:
    kv = make_kv()
    seq = KvSequence()
    run_step(kv, seq, tokens(8), 0, 8, step_id=1)
    kv.void_step(1)
    kv.free(seq)
    other = KvSequence()
    admit(kv, other, tokens(8, first=50))
    assert sorted(other.block_ids[0]) == [1, 2]


# Reset.


def test_a_reset_forgets_everything_but_only_when_nothing_is_in_use() -> None:
    kv = make_kv()
    cache(kv, tokens(8))
    seq = KvSequence()
    admit(kv, seq, tokens(4, first=50))
    assert not kv.reset_prefix_cache()
    assert hit_tokens(kv, tokens(9)) == 8
    kv.free(seq)
    assert kv.reset_prefix_cache()
    kv.check_integrity()
    assert hit_tokens(kv, tokens(9)) == 0
    assert kv.num_cached_blocks == 0
    assert kv.num_free_blocks == 10


# Capacity.


@pytest.mark.parametrize(
    ("groups", "num_tokens", "max_chunk", "expected"),
    [
        ((FULL,), 0, 8, 0),
        ((FULL,), 1, 8, 1),
        ((FULL,), 8, 8, 2),
        ((FULL,), 9, 8, 3),
        ((window_group(5),), 4, 8, 1),
        ((window_group(5),), 100, 1, 2),
        ((window_group(5),), 100, 8, 4),
        ((window_group(1),), 100, 1, 1),
        ((RECURRENT,), 3, 8, 1),
        ((RECURRENT,), 100, 8, 2),
        (gemma_groups(9), 40, 4, 10 + 5 * 4),
    ],
)
def test_blocks_at_the_peak(groups: tuple[KvGroup, ...], num_tokens: int, max_chunk: int, expected: int) -> None:
    assert make_kv(*groups).max_blocks_for(num_tokens, max_chunk=max_chunk) == expected


GROUPS = st.lists(
    st.one_of(st.just(FULL), st.just(RECURRENT), st.integers(1, 14).map(window_group)), min_size=1, max_size=3
)


@given(GROUPS, st.integers(1, 40), st.integers(1, 12), st.data())
def test_a_lone_request_never_needs_more_than_its_peak(
    groups: list[KvGroup], num_tokens: int, max_chunk: int, data: st.DataObject
) -> None:
    kv = make_kv(*groups, num_blocks=50)
    peak = kv.max_blocks_for(num_tokens, max_chunk=max_chunk)
    kv = make_kv(*groups, num_blocks=peak + 1)
    kv.check_fits(num_tokens, max_chunk=max_chunk)
    seq = KvSequence()
    position = 0
    while position < num_tokens:
        end = min(num_tokens, position + data.draw(st.integers(1, max_chunk)))
        assert run_step(kv, seq, tokens(num_tokens), position, end) is not None
        if data.draw(st.booleans()):
            kv.publish(seq, end, tokens(num_tokens))
        position = end


@settings(max_examples=20)
@given(GROUPS, st.integers(1, 9))
def test_some_chunking_reaches_the_peak(groups: list[KvGroup], max_chunk: int) -> None:
    kv = make_kv(*groups, num_blocks=32)
    peak = kv.max_blocks_for(40, max_chunk=max_chunk)
    reached = [0] * len(groups)
    for first in range(1, P + 1):  # first steps of all lengths, so that later ones start everywhere in a block
        seq = KvSequence()
        bounds = [*range(0, min(first, max_chunk)), *range(min(first, max_chunk), 40, max_chunk), 40]
        for begin, end in pairwise(bounds):
            run_step(kv, seq, tokens(40), begin, end)
            held = [sum(map(bool, table)) for table in seq.block_ids]
            reached = list(map(max, reached, held))
        kv.free(seq)
    assert sum(reached) == peak


def test_what_can_never_fit_is_refused_with_the_number_that_would() -> None:
    kv = make_kv(num_blocks=11)
    kv.check_fits(40, max_chunk=8)
    with pytest.raises(CapacityError, match="41 tokens need 11 KV blocks of 4 tokens and there are 10: use at most 40"):
        kv.check_fits(41, max_chunk=8)


def test_a_window_fits_at_any_length() -> None:
    make_kv(window_group(5), num_blocks=5).check_fits(10**6, max_chunk=8)
    with pytest.raises(CapacityError, match="use at most 12 tokens"):
        make_kv(window_group(5), num_blocks=4).check_fits(10**6, max_chunk=8)
