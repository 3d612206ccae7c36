from fakes.kv import admit, cache, hit_tokens, make_kv, tokens

from octavo.core.kv.ledger import tail_first
from octavo.core.kv.manager import KvManager
from octavo.core.kv.sequence import KvSequence


def free_order(kv: KvManager) -> list[int]:
    """Block ids in the order in which they would be given out."""
    token_ids = tokens(4 * kv.num_free_blocks, first=1000)
    reservation = kv.begin().try_reserve(KvSequence(), token_ids, computed=0, end=len(token_ids), step_id=0)
    assert reservation is not None
    return reservation.new_blocks[0][2]


def test_blocks_without_content_are_reused_first_then_fresh_ones_then_the_oldest_leaves() -> None:
    kv = make_kv()
    first, second = KvSequence(), KvSequence()
    admit(kv, first, tokens(14))
    kv.publish(first, 14, tokens(14))
    admit(kv, second, [*tokens(12), 50])
    kv.publish(second, 13, [*tokens(12), 50])
    assert (first.block_ids, second.block_ids) == ([[1, 2, 3, 4]], [[1, 2, 3, 5]])
    kv.free(first)
    kv.free(second)
    assert free_order(kv) == [5, 4, 6, 7, 8, 9, 10, 3, 2, 1]


def test_leaves_are_evicted_before_their_parents() -> None:
    kv = make_kv(num_blocks=4)
    cache(kv, tokens(12))
    admit(kv, KvSequence(), tokens(4, first=50))
    assert hit_tokens(kv, tokens(13)) == 8


def test_a_hit_keeps_the_whole_prefix_young() -> None:
    kv = make_kv(num_blocks=5)
    cache(kv, tokens(8))
    cache(kv, tokens(8, first=50))
    again = KvSequence()
    admit(kv, again, tokens(9)[:5])
    kv.free(again)
    admit(kv, KvSequence(), tokens(8, first=80))
    assert hit_tokens(kv, tokens(9)) == 4
    assert hit_tokens(kv, tokens(9, first=50)) == 4


def test_blocks_are_freed_from_the_tail_in_all_groups_alike() -> None:
    assert tail_first([[1, 2, 3], [0, 4, 5]]) == [3, 5, 2, 4, 1]
