"""Markers in an output, and budgets of reasoning."""

from __future__ import annotations

from octavo.runner.thinking import MarkerScan, ThinkingBudget


def forced_along(budget: ThinkingBudget, *token_ids: int) -> list[int | None]:
    """What is forced before each token and behind the last."""
    found = [budget.forced_token]
    for token_id in token_ids:
        budget.feed(token_id)
        found.append(budget.forced_token)
    return found


def test_a_marker_is_found_where_it_ends() -> None:
    scan = MarkerScan([1, 2, 1])
    assert [scan.feed(token_id) for token_id in (1, 2, 2, 1, 2, 1, 2, 1)] == [False] * 5 + [True, False, True]


def test_a_spent_budget_forces_the_whole_marker() -> None:
    assert forced_along(ThinkingBudget(2, start=None, end=[8, 9]), 5, 5, 8, 9, 4) == [None, None, 8, 9, None, None]


def test_a_budget_of_nothing_forces_the_marker_at_once() -> None:
    assert ThinkingBudget(0, start=None, end=[8, 9]).forced_token == 8


def test_a_marker_that_has_begun_is_completed() -> None:
    assert forced_along(ThinkingBudget(1, start=None, end=[8, 9]), 8, 9) == [None, 9, None]


def test_reasoning_that_ends_in_time_is_left_alone() -> None:
    assert forced_along(ThinkingBudget(3, start=None, end=[9]), 5, 9, 5, 5, 5, 5) == [None] * 7


def test_only_what_follows_the_start_marker_counts() -> None:
    budget = ThinkingBudget(1, start=[6, 7], end=[9])
    assert forced_along(budget, 5, 5, 6, 7, 5, 9, 5) == [None, None, None, None, None, 9, None, None]


def test_reasoning_that_begins_again_is_out_of_budget_at_once() -> None:
    assert forced_along(ThinkingBudget(1, start=[7], end=[9]), 7, 5, 9, 5, 7) == [None, None, 9, None, None, 9]
