from octavo.grammar.cache import GrammarCache
from octavo.proto.stats import GrammarStats
from octavo.proto.structured import PreparedGrammar


class Grammar:
    def __init__(self, num_bytes=100):
        self.num_bytes = num_bytes


def prepared(name):
    return PreparedGrammar(text=name, num_bytes=100)


def test_a_grammar_that_was_put_in_is_found():
    cache = GrammarCache(1000)
    grammar = Grammar()
    assert cache.get(prepared("a")) is None
    cache.put(prepared("a"), grammar)
    assert cache.get(prepared("a")) is grammar
    assert cache.stats() == GrammarStats(num_kept_bytes=104, num_queries=2, num_hits=1)


def test_the_least_recently_used_goes_first():
    cache = GrammarCache(320)
    for name in "abc":
        cache.put(prepared(name), Grammar())
    cache.get(prepared("a"))
    cache.put(prepared("d"), Grammar())
    assert [name for name in "abcd" if cache.get(prepared(name))] == ["a", "c", "d"]


def test_the_bytes_of_texts_count():
    cache = GrammarCache(10_000)
    cache.put(prepared("x" * 2000), Grammar(1))
    assert cache.num_bytes == 8001


def test_bytes_stay_below_the_limit_whatever_comes():
    cache = GrammarCache(1000)
    for index in range(500):
        cache.put(prepared(f"{index}"), Grammar(index))
        assert cache.num_bytes <= 1000
    assert len(cache) == 1


def test_what_is_larger_than_the_cache_is_not_kept_and_drives_nothing_out():
    cache = GrammarCache(300)
    cache.put(prepared("a"), Grammar())
    cache.put(prepared("b"), Grammar(1000))
    assert cache.get(prepared("b")) is None
    assert cache.get(prepared("a")) is not None


def test_putting_a_grammar_again_counts_it_once():
    cache = GrammarCache(1000)
    for _ in range(5):
        cache.put(prepared("a"), Grammar())
    assert cache.num_bytes == 104


def test_an_emptied_cache_holds_nothing():
    cache = GrammarCache(1000)
    cache.put(prepared("a"), Grammar())
    cache.clear()
    assert (len(cache), cache.num_bytes) == (0, 0)
