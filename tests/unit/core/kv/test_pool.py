import pytest

from octavo.base.errors import ConfigError
from octavo.core.kv.pool import BlockPool


def test_every_block_but_the_null_block_is_free_at_first() -> None:
    assert list(BlockPool(5).free_blocks()) == [1, 2, 3, 4]


def test_a_pool_without_a_usable_block_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_blocks"):
        BlockPool(1)


def test_a_block_can_leave_from_the_middle_of_the_list() -> None:
    pool = BlockPool(5)
    pool.reference(2)
    assert list(pool.free_blocks()) == [1, 3, 4]
    assert pool.num_free == 3
    assert not pool.is_idle(2)


def test_blocks_without_content_come_back_in_front_and_cached_ones_at_the_back() -> None:
    pool = BlockPool(5)
    pool.reference(1)
    pool.reference(2)
    pool.release(1, is_cached=True)
    pool.release(2, is_cached=False)
    assert list(pool.free_blocks()) == [2, 3, 4, 1]


def test_a_shared_block_comes_back_with_its_last_reference() -> None:
    pool = BlockPool(3)
    pool.reference(1)
    pool.reference(1)
    pool.release(1, is_cached=False)
    assert not pool.is_idle(1)
    pool.release(1, is_cached=False)
    assert pool.is_idle(1)


def test_a_held_block_stays_out_after_its_last_reference() -> None:
    pool = BlockPool(3)
    pool.reference(1)
    pool.hold(1)
    pool.release(1, is_cached=True)
    assert list(pool.free_blocks()) == [2]
    pool.end_hold(1, is_cached=True)
    assert list(pool.free_blocks()) == [2, 1]


def test_an_idle_block_can_be_held_and_then_shared() -> None:
    pool = BlockPool(3)
    pool.hold(1)
    pool.reference(1)
    pool.end_hold(1, is_cached=False)
    assert list(pool.free_blocks()) == [2]
    assert pool.num_free == 1


def test_an_emptied_pool_fills_again() -> None:
    pool = BlockPool(3)
    pool.reference(1)
    pool.reference(2)
    assert list(pool.free_blocks()) == []
    pool.release(2, is_cached=True)
    pool.release(1, is_cached=True)
    assert list(pool.free_blocks()) == [2, 1]


def test_a_block_that_lost_its_content_moves_to_the_front() -> None:
    pool = BlockPool(4)
    pool.move_to_front(3)
    assert list(pool.free_blocks()) == [3, 1, 2]


def test_the_null_block_is_never_idle() -> None:
    assert not BlockPool(3).is_idle(0)
