from fakes.kv import FULL, RECURRENT, P, window_group

from octavo.core.kv.groups import make_rules
from octavo.core.kv.prefix import CacheEntry, HitLosses, PrefixCache, PrefixHit, find_hit
from octavo.proto.kv import KvGroup

DIGESTS = [bytes([block]) * 32 for block in range(8)]


def hit(*present: tuple[KvGroup, str]) -> PrefixHit:
    """The hit where `present` says for each group which blocks are cached (x), pending (p) or missing (-)."""
    entries = {
        (group, DIGESTS[idx]): CacheEntry(group, DIGESTS[idx], 10 * group + idx + 1, step_id=0, is_pending=mark == "p")
        for group, (_, marks) in enumerate(present)
        for idx, mark in enumerate(marks)
        if mark != "-"
    }
    rules = make_rules([group for group, _ in present], P)
    num_blocks = len(present[0][1])
    return find_hit(rules, lambda g, d: entries.get((g, d)), DIGESTS, max_blocks=num_blocks, block_size=P)


def test_a_window_shortens_what_full_attention_has() -> None:
    found = hit((FULL, "xxxx"), (window_group(5), "-xx-"))
    assert found.num_tokens == 3 * P
    assert found.losses == HitLosses(sliding_window=P)
    assert found.tables(2) == [[1, 2, 3], [0, 0, 13]]


def test_full_attention_is_asked_first_whatever_its_place() -> None:
    found = hit((window_group(5), "-xx-"), (FULL, "xxxx"))
    assert found.num_tokens == 3 * P
    assert found.losses == HitLosses(sliding_window=P)


def test_groups_shorten_each_other_until_nothing_changes() -> None:
    found = hit((FULL, "xxxxxx"), (window_group(5), "x-xx--"), (RECURRENT, "x---x-"), (window_group(6), "xxxxxx"))
    assert found.num_tokens == P
    assert found.losses == HitLosses(sliding_window=2 * P, recurrent=3 * P)
    found = hit((FULL, "xxxxxx"), (window_group(5), "-x-xx-"), (RECURRENT, "-x-x-x"))
    assert found.num_tokens == 4 * P
    assert found.losses == HitLosses(sliding_window=P, recurrent=P)


def test_no_group_in_common_is_no_hit() -> None:
    found = hit((FULL, "xxx"), (RECURRENT, "---"))
    assert found.num_tokens == 0
    assert found.losses == HitLosses(recurrent=3 * P)


def test_what_one_full_group_lost_is_lost_to_the_other() -> None:
    assert hit((FULL, "xxx"), (FULL, "x-x")).losses == HitLosses(full=2 * P)


def test_a_model_of_windows_alone_hits_without_full_attention() -> None:
    found = hit((window_group(5), "-xx-"), (window_group(5), "-xxx"))
    assert found.num_tokens == 3 * P
    assert found.losses == HitLosses()


def test_published_blocks_end_at_the_first_pending_one() -> None:
    assert hit((FULL, "xxpx")).num_published == 2
    assert hit((FULL, "xxx")).num_published == 3


def test_the_cache_finds_by_digest_and_by_block_until_an_entry_is_dropped() -> None:
    cache = PrefixCache(2)
    entry = CacheEntry(1, DIGESTS[0], 5, step_id=3)
    cache.insert(entry)
    assert cache.get(1, DIGESTS[0]) is entry
    assert cache.get(0, DIGESTS[0]) is None
    assert cache.of_block(5) is entry
    cache.drop(entry)
    assert cache.get(1, DIGESTS[0]) is None
    assert cache.of_block(5) is None
    assert len(cache) == 0


def test_pending_entries_are_told_apart_by_step_until_published() -> None:
    cache = PrefixCache(1)
    entries = [CacheEntry(0, DIGESTS[idx], idx + 1, step_id=idx) for idx in range(3)]
    for entry in entries:
        cache.insert(entry)
    cache.publish(entries[2])
    assert cache.pending_since(1) == [entries[1]]
