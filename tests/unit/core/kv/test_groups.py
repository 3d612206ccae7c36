import pytest
from fakes.kv import FULL, P, window_group
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import InvariantError
from octavo.core.kv.groups import NEVER, FullRule, GroupRule, RecurrentRule, WindowRule, make_rules
from octavo.proto.kv import KvGroup

RULES: list[GroupRule] = [FullRule(P), RecurrentRule(P), *(WindowRule(P, window) for window in (1, 2, 3, 4, 5, 8, 9))]


def hit_of(rule: GroupRule, present: str) -> int:
    """The hit, in blocks, where `present` has an x for each block that is there."""
    return rule.find_hit(lambda block: present[block] == "x", len(present))


def lives_on(rule: GroupRule, present: str, hit: int) -> bool:
    """By definition: every position that the query at hit * P sees, and that is computed, is there."""
    query = hit * P
    match rule:
        case WindowRule():
            seen = range(max(0, query - rule._window + 1), query)
        case RecurrentRule():
            seen = range(max(0, query - 1), query)
        case _:
            seen = range(query)
    return all(present[position // P] == "x" for position in seen)


@pytest.mark.parametrize(("present", "hit"), [("", 0), ("-xx", 0), ("xx-x", 2), ("xxx", 3)])
def test_full_attention_hits_up_to_the_first_gap(present: str, hit: int) -> None:
    assert hit_of(FullRule(P), present) == hit


@pytest.mark.parametrize(
    ("window", "present", "hit"),
    [
        (5, "---x", 4),  # a window - 1 of one block: the last one suffices
        (5, "--x-", 3),
        (6, "---x", 0),  # a window - 1 of 5 positions reaches into the block before
        (6, "--xx", 4),
        (6, "x-xx-", 4),
        (9, "xx-x", 2),
        (9, "x--x", 1),  # less than a window, but from the start
        (9, "-x-x", 0),
        (1, "----", 4),  # a position that sees only itself needs nothing
    ],
)
def test_a_window_hits_where_its_last_positions_are_there(window: int, present: str, hit: int) -> None:
    assert hit_of(WindowRule(P, window), present) == hit


@pytest.mark.parametrize(("present", "hit"), [("", 0), ("--x-", 3), ("xx--", 2), ("----", 0)])
def test_a_recurrent_group_hits_only_where_there_is_a_state(present: str, hit: int) -> None:
    assert hit_of(RecurrentRule(P), present) == hit


@given(st.sampled_from(RULES), st.text("x-", max_size=9))
def test_a_hit_is_the_longest_that_can_go_on(rule: GroupRule, present: str) -> None:
    expected = max(hit for hit in range(len(present) + 1) if lives_on(rule, present, hit))
    assert hit_of(rule, present) == expected


@pytest.mark.parametrize(
    ("window", "computed", "first"), [(5, 7, 0), (5, 8, 1), (1, 3, 0), (1, 4, 1), (9, 0, 0), (9, 100, 23)]
)
def test_blocks_wholly_behind_the_window_are_not_needed(window: int, computed: int, first: int) -> None:
    assert WindowRule(P, window).first_needed(computed) == first


@given(st.sampled_from(RULES), st.integers(0, 60))
def test_release_at_is_the_next_start_that_needs_less(rule: GroupRule, computed: int) -> None:
    at = rule.release_at(computed)
    if at is NEVER:
        assert rule.first_needed(10**6) == rule.first_needed(computed)
    else:
        assert at > computed
        assert rule.first_needed(int(at) - 1) == rule.first_needed(computed) < rule.first_needed(int(at))


def test_a_recurrent_step_stores_only_its_last_state() -> None:
    rule = RecurrentRule(P)
    assert [rule.is_stored(block, 11) for block in range(3)] == [False, False, True]
    assert [rule.is_complete(block, 8) for block in range(2)] == [False, True]
    assert not rule.is_complete(1, 9)


@pytest.mark.parametrize("window", [None, 0])
def test_a_window_group_needs_a_window(window: int | None) -> None:
    with pytest.raises(InvariantError, match="group 1: window="):
        make_rules((FULL, KvGroup(kind="sliding_window", layers=(1,), window=window)), P)


def test_rules_follow_the_groups() -> None:
    kinds = [rule.kind for rule in make_rules((FULL, window_group(4)), P)]
    assert kinds == ["full", "sliding_window"]
