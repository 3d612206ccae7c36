"""Entries of a plan: those that can be computed and the reasons of the others."""

import numpy as np
import pytest
from fakes.plans import plan, sequence

from octavo.base.errors import InvariantError
from octavo.runner.entries import read_entries
from octavo.runner.rows import TokenRows


@pytest.fixture
def rows() -> TokenRows:
    rows = TokenRows(max_num_seqs=4, max_model_len=8, vocab_size=10)
    rows.admit(sequence(0, [1, 2, 3]))
    rows.admit(sequence(1, [1, 2, 3]))
    rows.admit(sequence(2, [77]))
    return rows


def test_good_entries_become_arrays(rows):
    entries, failed = read_entries(plan(1, [(1, 0, 3, True), (0, 1, 1, False)]), rows)
    assert failed == {}
    assert entries.rows.tolist() == [1, 0]
    assert entries.ends.tolist() == [3, 2]
    assert entries.samples.tolist() == [True, False]


@pytest.mark.parametrize(
    ("share", "reason"),
    [
        ((2, 0, 1, True), "vocabulary"),
        ((3, 0, 1, True), "holds no sequence"),
        ((0, 0, 0, True), "not a share"),
        ((0, -1, 2, True), "not a share"),
        ((0, 6, 3, True), "not a share"),
    ],
)
def test_a_bad_entry_fails_alone(rows, share, reason):
    entries, failed = read_entries(plan(1, [(1, 0, 3, True), share, (0, 0, 1, True)]), rows)
    assert entries.indices.tolist() == [0, 2]
    assert list(failed) == [1]
    assert failed[1].kind == "internal"
    assert reason in failed[1].text


def test_draft_tokens_are_refused_not_ignored(rows):
    _, failed = read_entries(plan(1, [(1, 0, 3, True)], drafts={0: [5]}), rows)
    assert failed[0].kind == "internal"
    assert "draft" in failed[0].text


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_that_does_not_exist_is_our_bug(rows, row):
    with pytest.raises(InvariantError, match="row"):
        read_entries(plan(1, [(row, 0, 1, True)]), rows)


def test_keep_selects_in_all_arrays(rows):
    entries, _ = read_entries(plan(1, [(1, 0, 3, True), (0, 1, 1, False)]), rows)
    kept = entries.keep(np.array([False, True]))
    assert (kept.indices.tolist(), kept.rows.tolist(), kept.num_tokens.tolist()) == ([1], [0], [1])
