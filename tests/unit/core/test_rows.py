from __future__ import annotations

import pytest

from octavo.base.errors import InvariantError
from octavo.core.rows import RowTable


def test_low_rows_go_first() -> None:
    rows = RowTable(3)
    assert [rows.take(), rows.take(), rows.take()] == [0, 1, 2]
    assert rows.num_free == 0


def test_taking_a_row_where_there_is_none_is_our_bug() -> None:
    rows = RowTable(1)
    rows.take()
    with pytest.raises(InvariantError, match="all 1 rows"):
        rows.take()


def test_a_row_given_back_is_named_once() -> None:
    rows = RowTable(2)
    rows.give_back(rows.take())
    assert rows.take_freed() == [0]
    assert rows.take_freed() == []


def test_after_a_lost_plan_every_free_row_is_named_again() -> None:
    rows = RowTable(3)
    rows.give_back(rows.take())
    rows.take_freed()
    held = rows.take()
    rows.tell_all_again()
    assert rows.take_freed() == [1, 2]
    rows.check_integrity([held])


def test_a_row_both_free_and_held_is_found() -> None:
    with pytest.raises(InvariantError):
        RowTable(2).check_integrity([1])
