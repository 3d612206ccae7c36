"""The checker itself: it must see what is wrong and allow what may differ."""

from __future__ import annotations

import pytest
from oracle.checker import compare_with_oracle, first_near_tie, load_items

ITEM = {
    "id": "x",
    "output_token_ids": [5, 6, 7],
    "top_logprobs": [[[5, -0.1], [9, -2.0]], [[6, -0.69310], [8, -0.69315]], [[7, -0.2], [1, -3.0]]],
}
GOOD = [{5: -0.1, 9: -2.0}, {6: -0.69310, 8: -0.69315}, {7: -0.2, 1: -3.0}]


def test_the_oracle_agrees_with_itself() -> None:
    assert compare_with_oracle(ITEM, [5, 6, 7], GOOD) == []


@pytest.mark.parametrize(
    ("token_ids", "word"),
    [([9, 6, 7], "position 0"), ([5, 1, 7], "position 1"), ([5, 6], "ends"), ([5, 6, 7, 2], "goes on")],
)
def test_a_wrong_token_or_length_is_seen(token_ids: list[int], word: str) -> None:
    problems = compare_with_oracle(ITEM, token_ids, [*GOOD, {}])
    assert len(problems) == 1
    assert word in problems[0]


@pytest.mark.parametrize("wrong", [{5: -0.1, 9: -2.01}, {5: -0.1}, {5: float("nan"), 9: -2.0}])
def test_a_wrong_or_missing_logprob_is_seen(wrong: dict[int, float]) -> None:
    assert compare_with_oracle(ITEM, [5, 6, 7], [wrong, *GOOD[1:]]) != []


def test_after_the_other_half_of_a_near_tie_anything_may_follow() -> None:
    assert compare_with_oracle(ITEM, [5, 8, 100, 101], [GOOD[0], GOOD[1], {}, {}]) == []
    assert first_near_tie(ITEM) == 1


@pytest.mark.parametrize("model", ["smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct", "gemma-3-270m"])
def test_the_stored_files_are_consistent(model: str) -> None:
    for item in load_items(model):
        assert len(item["top_logprobs"]) == len(item["output_token_ids"]) > 0
        logprobs = [{token_id: value for token_id, value in top} for top in item["top_logprobs"]]  # noqa: C416
        assert compare_with_oracle(item, item["output_token_ids"], logprobs) == []


def test_the_tolerance_is_the_callers() -> None:
    off = [{5: -0.1005, 9: -2.0}, *GOOD[1:]]
    assert compare_with_oracle(ITEM, [5, 6, 7], off) == []
    assert compare_with_oracle(ITEM, [5, 6, 7], off, tolerance=1e-4) != []
