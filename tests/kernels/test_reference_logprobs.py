"""Log-sum-exp, ranks and best tokens against float64 and against sorting everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.kernels.reference import ReferenceOps
from octavo.kernels.reference.logprobs import best_tokens, describe_tokens, log_sum_exp


@pytest.mark.parametrize("vocab", [1, 7, 1024, 1025, 49152])
@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_log_sum_exp_is_exact_to_float32_wherever_the_logits_lie(vocab: int, shift: float) -> None:
    logits = (5 * np.random.default_rng(0).standard_normal(vocab) + shift).astype(np.float32)
    wide = logits.astype(np.float64)
    expected = wide.max() + np.log(np.exp(wide - wide.max()).sum())
    assert abs(log_sum_exp(logits) - expected) <= 2e-6 + abs(expected) * 2.0**-23


def test_impossible_tokens_add_nothing_even_where_a_partition_has_no_other() -> None:
    logits = np.full(5000, -np.inf, np.float32)
    logits[2048] = 3.0
    assert log_sum_exp(logits) == 3.0


@given(
    values=st.lists(st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5, 3.0]), min_size=1, max_size=40),
    count=st.integers(0, 45),
)
def test_best_tokens_are_ordered_by_logit_then_id(values: list[float], count: int) -> None:
    expected = sorted(range(len(values)), key=lambda token_id: (-values[token_id], token_id))[:count]
    assert best_tokens(np.array(values, np.float32), count).tolist() == expected


def test_ranks_count_the_strictly_more_likely() -> None:
    token_ids, logprobs, ranks = describe_tokens(np.array([1, 4, 4, 0], np.float32), np.array([0, 2, 1, 3], np.int32))
    assert token_ids.tolist() == [0, 2, 1, 3]
    assert ranks.tolist() == [3, 1, 1, 4]
    assert logprobs[1] == logprobs[2]


def test_token_logprobs_give_the_token_first_then_the_best() -> None:
    logits = np.array([[0, 3, 1, 2], [5, 1, 2, 3]], np.float32)
    first, second = ReferenceOps("float32").token_logprobs(logits, np.array([0, 0], np.int32), 2)
    assert (first[0].tolist(), first[2].tolist()) == ([0, 1, 3], [4, 1, 2])
    assert (second[0].tolist(), second[2].tolist()) == ([0, 0, 3], [1, 1, 2])
