"""Batches: gathering, pending tokens, slots, against a loop over tokens."""

import numpy as np
import pytest
from fakes.fake_model import FULL, WINDOW, make_cache_spec
from fakes.plans import blocks_for, plan, sequence
from hypothesis import given
from hypothesis import strategies as st

from octavo.runner.batch import UNKNOWN, build_batch, find_blockless, resolve
from octavo.runner.block_table import BlockTables
from octavo.runner.entries import PromptRanges, StepEntries, read_entries
from octavo.runner.rows import TokenRows

SPEC = make_cache_spec(groups=(FULL, WINDOW), block_size=4)
BLOCKS_PER_ROW = 8


class Rig:
    """Four rows of known lengths, with blocks for 32 tokens each."""

    def __init__(self, lengths=(10, 1, 7, 4)) -> None:
        self.rows = TokenRows(max_num_seqs=4, max_model_len=32, vocab_size=1000)
        self.tables = BlockTables(SPEC, max_num_seqs=4, max_model_len=32)
        for row, length in enumerate(lengths):
            self.rows.admit(sequence(row, [100 * row + i for i in range(length)]))
            self.tables.write(blocks_for(row, BLOCKS_PER_ROW, num_groups=2))

    def build(self, *shares, prompt_ranges=None):
        entries, failed = read_entries(plan(1, shares), self.rows)
        assert not failed
        return build_batch(entries, self.rows, self.tables, prompt_ranges)


shares = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(1, 12), st.booleans()),
    min_size=1,
    max_size=4,
    unique_by=lambda share: share[0],
)


@given(shares)
def test_the_batch_is_what_a_loop_over_tokens_would_make(shares):
    rig = Rig()
    batch = rig.build(*shares)
    tokens, positions, sample_rows = [], [], []
    slots = ([], [])
    for row, start, count, samples in shares:
        for position in range(start, start + count):
            tokens.append(100 * row + position if position < rig.rows.num_known[row] else UNKNOWN)
            positions.append(position)
            for group in (0, 1):
                block = 1 + (row * 2 + group) * BLOCKS_PER_ROW + position // 4
                slots[group].append(block * 4 + position % 4)
        if samples:
            sample_rows.append(len(tokens) - 1)
    forward = batch.forward
    assert forward.tokens.tolist() == tokens
    assert forward.positions.tolist() == positions
    assert forward.query_start.tolist() == np.cumsum([0, *(share[2] for share in shares)]).tolist()
    assert forward.seq_lens.tolist() == [start + count for _, start, count, _ in shares]
    assert [group.slots.tolist() for group in forward.groups] == list(slots)
    assert forward.logit_rows.tolist() == batch.sample_rows.tolist() == sample_rows
    for array in (forward.tokens, forward.positions, forward.query_start, forward.seq_lens, forward.logit_rows):
        assert array.dtype == np.int32
        assert array.flags.c_contiguous
    for group in forward.groups:
        assert group.slots.dtype == group.block_table.dtype == np.int32
        assert group.block_table.flags.c_contiguous


def test_tables_are_as_wide_as_the_longest_sequence():
    batch = Rig().build((0, 8, 1, True), (1, 0, 1, True))
    assert batch.forward.groups[0].block_table.shape == (2, 3)


def test_an_empty_batch_can_be_built():
    rig = Rig()
    batch = rig.build((1, 0, 1, True))
    empty = build_batch(batch.entries.keep(np.array([False])), rig.rows, rig.tables)
    assert empty.num_tokens == 0
    assert empty.forward.query_start.tolist() == [0]


def test_a_batch_shares_no_memory_with_the_rows():
    rig = Rig()
    batch = rig.build((0, 0, 3, False), (1, 0, 1, False))
    rig.rows.token_ids[:] = 5
    rig.tables.clear(0)
    assert batch.forward.tokens.tolist() == [0, 1, 2, 100]
    assert batch.forward.groups[0].block_table[0, 0] == 1


def test_pending_tokens_are_filled_once_sampled():
    rig = Rig()
    batch = rig.build((0, 10, 1, True), (1, 0, 1, True), (3, 3, 2, True))
    assert batch.forward.tokens.tolist() == [UNKNOWN, 100, 303, UNKNOWN]
    rig.rows.record(np.array([0, 3]), np.array([10, 4]), np.array([55, 66]))
    assert resolve(batch, rig.rows) is None
    assert batch.forward.tokens.tolist() == [55, 100, 303, 66]


def test_a_token_that_was_never_sampled_stays_unknown_and_is_named():
    rig = Rig()
    batch = rig.build((0, 10, 1, True), (1, 0, 1, True), (3, 3, 2, True))
    rig.rows.token_ids[0, 10] = 9  # left behind by an earlier sequence
    rig.rows.record(np.array([3]), np.array([4]), np.array([66]))
    assert resolve(batch, rig.rows).tolist() == [False, True, True]
    assert batch.forward.tokens.tolist() == [UNKNOWN, 100, 303, 66]


def test_prompt_positions_join_the_logit_rows():
    ranges = PromptRanges(first=np.array([0, 0]), last=np.array([0, 3]))
    batch = Rig().build((1, 0, 1, True), (0, 0, 4, True), prompt_ranges=ranges)
    assert batch.forward.logit_rows.tolist() == [0, 1, 2, 3, 4]
    assert batch.sample_rows.tolist() == [0, 4]


def test_tokens_without_a_block_are_found():
    rig = Rig()
    assert find_blockless(rig.build((0, 0, 3, True), (1, 0, 1, True)), 4) is None
    rig.tables.write([(2, 1, 1, [0])])
    complete = find_blockless(rig.build((0, 0, 5, True), (2, 0, 5, True), (1, 0, 1, True)), 4)
    assert complete.tolist() == [True, False, True]


def test_entries_are_read_only_values():
    entries = StepEntries(
        **dict.fromkeys(("indices", "rows", "starts", "num_tokens", "samples"), np.zeros(1, np.int32))
    )
    with pytest.raises(AttributeError):
        entries.rows = np.ones(1)
