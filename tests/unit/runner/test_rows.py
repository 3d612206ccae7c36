"""Token rows: admission, faults, reuse."""

import numpy as np
import pytest
from fakes.plans import sequence

from octavo.runner.rows import TokenRows


@pytest.fixture
def rows() -> TokenRows:
    return TokenRows(max_num_seqs=3, max_model_len=8, vocab_size=10)


def test_an_admitted_row_knows_its_tokens(rows):
    rows.admit(sequence(1, [3, 4, 5], num_prompt=2))
    assert rows.is_active.tolist() == [False, True, False]
    assert rows.token_ids[1, :3].tolist() == [3, 4, 5]
    assert (rows.num_known[1], rows.num_prompt[1]) == (3, 2)


def test_a_sampled_token_becomes_known(rows):
    rows.admit(sequence(0, [3]))
    rows.admit(sequence(2, [4, 5]))
    rows.record(np.array([0, 2]), np.array([1, 2]), np.array([7, 8]))
    assert rows.token_ids[0, :2].tolist() == [3, 7]
    assert rows.num_known.tolist() == [2, 0, 3]


def test_a_full_row_may_sample_once_more(rows):
    rows.admit(sequence(0, [1] * 8))
    rows.record(np.array([0]), np.array([8]), np.array([9]))
    assert rows.token_ids[0, 8] == 9


def test_a_reused_row_knows_only_the_new_tokens(rows):
    rows.admit(sequence(0, [1] * 8))
    rows.free([0])
    rows.admit(sequence(0, [2]))
    assert (rows.num_known[0], rows.num_prompt[0]) == (1, 1)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (sequence(0, [1, 10]), "outside the vocabulary"),
        (sequence(0, [-1]), "outside the vocabulary"),
        (sequence(0, [1] * 9), "do not fit"),
        (sequence(0, [], num_prompt=0), "do not fit"),
        (sequence(0, [1], num_prompt=2), "do not fit"),
    ],
)
def test_a_sequence_that_cannot_be_computed_leaves_a_fault(rows, bad, reason):
    rows.admit(bad)
    assert not rows.is_active[0]
    assert rows.faults[0].kind == "internal"
    assert reason in rows.faults[0].text


def test_freeing_clears_the_fault_and_may_be_repeated(rows):
    rows.admit(sequence(0, [99]))
    rows.free([0])
    rows.free([0, 1])
    assert not rows.faults
