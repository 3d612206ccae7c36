import threading
import time

import numpy as np
import pytest
from fakes.grammar_tokenizer import encode, eos_id, make_tokenizer, vocab_size
from fakes.matching import compiled, mask_of, random_text, start

from octavo.base.errors import GrammarError
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.matcher import LlguidanceMatcher
from octavo.grammar.spelled_token import SpelledTokens

SPELLED = SpelledTokens(None)

CITY = {
    "type": "object",
    "properties": {"name": {"enum": ["city1", "city22"]}, "count": {"type": "integer"}},
    "required": ["name", "count"],
    "additionalProperties": False,
}


def test_a_mask_admits_what_the_grammar_admits_and_nothing_else():
    matcher = start(regex="[ab]x")
    texts = {make_tokenizer().id_to_token(int(idx)) for idx in mask_of(matcher)}
    assert texts == {"a", "b"}


def test_the_end_is_admitted_only_where_the_text_may_end():
    matcher = start(regex="ab?")
    assert eos_id() not in mask_of(matcher)
    matcher.accept(encode("a"))
    assert matcher.is_accepting
    assert not matcher.is_complete
    assert eos_id() in mask_of(matcher)
    matcher.accept(encode("b"))
    assert matcher.is_complete
    assert list(mask_of(matcher)) == [eos_id()]


def test_a_text_that_only_its_mask_shows_to_be_over_is_complete_then():
    matcher = start(json={"type": "number", "multipleOf": 2})
    matcher.accept(encode("0"))
    assert list(mask_of(matcher)) == [eos_id()]
    assert matcher.is_complete
    matcher.rollback(1)
    assert not matcher.is_complete


def test_bits_beyond_the_vocabulary_are_never_set():
    assert vocab_size() % 32
    matcher = start(regex="(?s:.)*")
    assert mask_of(matcher).max() < make_tokenizer().get_vocab_size()


def test_special_tokens_are_no_part_of_free_text():
    allowed = set(mask_of(start(regex="(?s:.)*")))
    special = {make_tokenizer().token_to_id(text) for text in ("<tool_call>", "</tool_call>")}
    assert not allowed & special


def test_every_end_token_of_the_model_is_admitted():
    from octavo.grammar.llguidance_backend import LlguidanceBackend
    from octavo.proto.structured import GrammarSpec

    other = make_tokenizer().token_to_id("</tool_call>")
    backend = LlguidanceBackend(make_tokenizer().to_str(), vocab_size(), [eos_id(), other])
    matcher = backend.compile(backend.prepare(GrammarSpec("regex", "a"))).start()
    matcher.accept(encode("a"))
    assert set(mask_of(matcher)) == {eos_id(), other}


@pytest.mark.parametrize(("whitespace", "at_least"), [(False, 20), (True, 1)])
def test_each_forced_token_is_the_only_one_its_mask_admits(whitespace, at_least):
    rng = np.random.default_rng(1)
    num_forced = 0
    for seed in range(20):
        matcher = start(json=CITY, disable_any_whitespace=not whitespace)
        for _ in range(60):
            if matcher.is_complete:
                break
            forced = matcher.forced_tokens()
            ahead = matcher.fork()
            for token_id in forced:
                assert list(mask_of(ahead)) == [token_id], seed
                ahead.accept([token_id])
            num_forced += len(forced)
            allowed = mask_of(matcher)
            if len(allowed) == 1 and not forced:
                assert allowed[0] == eos_id()
            matcher.accept([int(rng.choice(allowed))])
    assert num_forced >= at_least


def test_nothing_is_forced_where_the_text_may_end():
    matcher = start(regex="a(bcdef)?")
    matcher.accept(encode("a"))
    assert matcher.forced_tokens() == []


def test_forced_tokens_of_a_grammar_without_a_choice_are_its_whole_text():
    matcher = start(regex="city1 is red")
    forced = matcher.forced_tokens()
    assert forced == encode("city1 is red")
    matcher.accept(forced)
    assert matcher.forced_tokens() == []


def test_rollback_takes_back_tokens_also_after_the_end():
    matcher = start(regex="abc")
    before = list(mask_of(matcher))
    ids = encode("abc")
    matcher.accept(ids)
    matcher.accept([eos_id()])
    assert matcher.is_complete
    matcher.rollback(len(ids) + 1)
    assert list(mask_of(matcher)) == before
    matcher.rollback(0)


def test_the_end_is_refused_where_the_text_may_not_end():
    matcher = start(regex="abc")
    with pytest.raises(GrammarError, match="may not end"):
        matcher.accept([*encode("a"), eos_id()])


def test_nothing_follows_the_end():
    matcher = start(regex="a*")
    matcher.accept([*encode("a"), eos_id()])
    with pytest.raises(GrammarError, match="ended"):
        matcher.accept(encode("a"))


def test_a_fork_goes_its_own_way():
    matcher = start(regex="ab|ac")
    matcher.accept(encode("a"))
    fork = matcher.fork()
    fork.accept(encode("b"))
    assert fork.is_complete
    assert not matcher.is_complete
    matcher.accept(encode("c"))


def test_a_token_that_is_not_allowed_ends_the_matcher_for_good():
    matcher = start(json={"type": "integer"})
    with pytest.raises(GrammarError, match="not allowed") as caught:
        matcher.accept(encode("true"))
    assert "grammar" in str(caught.value)
    for call in (matcher.forced_tokens, matcher.fork, lambda: matcher.accept([1]), lambda: matcher.rollback(1)):
        with pytest.raises(GrammarError):
            call()
    with pytest.raises(GrammarError):
        _ = matcher.is_accepting


@pytest.mark.parametrize("token_id", [-1, 10**9])
def test_ids_outside_the_vocabulary_are_a_grammar_error(token_id):
    with pytest.raises(GrammarError, match="vocabulary"):
        start(regex="a").accept([token_id])


def test_a_panic_of_the_library_is_a_grammar_error():
    class PanicException(BaseException):
        pass

    class Broken:
        def consume_tokens(self, ids):
            raise PanicException("index out of bounds")

    with pytest.raises(GrammarError, match="failed"):
        LlguidanceMatcher(Broken(), 100, (), GrammarLimits(), SPELLED).accept([1])


def test_an_interrupt_is_not_taken_for_a_panic():
    class Interrupted:
        def consume_tokens(self, ids):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LlguidanceMatcher(Interrupted(), 100, (), GrammarLimits(), SPELLED).accept([1])


def test_a_grammar_that_is_slow_at_every_token_ends_its_text():
    class Slow:
        def consume_tokens(self, ids):
            end_s = time.thread_time() + 0.005
            while time.thread_time() < end_s:
                pass
            return True

    matcher = LlguidanceMatcher(Slow(), 100, (), GrammarLimits(step_cpu_s=0.001, spare_cpu_s=0.01), SPELLED)
    with pytest.raises(GrammarError, match="too much time"):
        all(matcher.accept([1]) is None for _ in range(20))


def test_random_texts_end_in_the_grammar():
    rng = np.random.default_rng(2)
    for _ in range(10):
        text = random_text(start(json=CITY), rng, max_tokens=200, short_after=10)
        assert text is not None


def test_matchers_of_one_grammar_work_in_several_threads():
    grammar = compiled(json={})
    failures = []

    def walk(seed):
        try:
            random_text(grammar.start(), np.random.default_rng(seed), max_tokens=40, short_after=5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
