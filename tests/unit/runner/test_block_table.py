"""Block tables: writes, copies, windows."""

import numpy as np
import pytest
from fakes.fake_model import FULL, WINDOW, make_cache_spec

from octavo.runner.block_table import BlockTables


@pytest.fixture
def tables() -> BlockTables:
    return BlockTables(make_cache_spec(groups=(FULL, WINDOW)), max_num_seqs=2, max_model_len=18)


def ints(*values):
    return np.array(values, np.int32)


def test_writes_go_to_their_row_group_and_place(tables):
    tables.write([(0, 0, 0, [5, 6]), (1, 1, 2, [7]), (0, 0, 2, [8])])
    full, window = tables.gather(ints(1, 0), ints(0, 0), 3)
    assert full.tolist() == [[0, 0, 0], [5, 6, 8]]
    assert window.tolist() == [[0, 0, 7], [0, 0, 0]]


def test_the_table_has_room_for_the_last_partial_block(tables):
    tables.write([(0, 0, 0, [1, 2, 3, 4, 5])])
    assert tables.gather(ints(0), ints(0), 5)[0].tolist() == [[1, 2, 3, 4, 5]]


def test_blocks_that_the_window_has_passed_are_null_in_the_copy(tables):
    tables.write([(row, group, 0, [1, 2, 3, 4]) for row in (0, 1) for group in (0, 1)])
    full, window = tables.gather(ints(0, 1), ints(8, 9), 4)  # window 6: position 8 sees from 3 on, position 9 from 4 on
    assert full.tolist() == [[1, 2, 3, 4]] * 2
    assert window.tolist() == [[1, 2, 3, 4], [0, 2, 3, 4]]


def test_a_copy_does_not_change_with_the_table(tables):
    copied = tables.gather(ints(0), ints(0), 2)[0]
    tables.write([(0, 0, 0, [9, 9])])
    assert copied.tolist() == [[0, 0]]


def test_clearing_nulls_a_row_in_all_groups(tables):
    tables.write([(row, group, 0, [1, 2]) for row in (0, 1) for group in (0, 1)])
    tables.clear(0)
    for table in tables.gather(ints(0, 1), ints(0, 0), 2):
        assert table.tolist() == [[0, 0], [1, 2]]
