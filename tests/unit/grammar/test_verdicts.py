import pytest

from octavo.base.errors import ValidationError
from octavo.grammar.verdicts import Refusal, Verdicts
from octavo.proto.structured import GrammarSpec, PreparedGrammar


def spec(text):
    return GrammarSpec("regex", text)


def grammar(text="a"):
    return PreparedGrammar(text=text, num_bytes=1)


def test_a_verdict_is_found_again_and_options_tell_constraints_apart():
    verdicts = Verdicts(10_000)
    verdicts.add(GrammarSpec("json", "{}", (("disable_any_whitespace", True),)), grammar())
    assert verdicts.find(GrammarSpec("json", "{}", (("disable_any_whitespace", True),))) == grammar()
    assert verdicts.find(GrammarSpec("json", "{}")) is None


def test_a_refusal_is_said_again_by_an_error_of_its_own():
    verdicts = Verdicts(10_000)
    verdicts.add(spec("a"), Refusal.of(ValidationError("no", parameter="p", value="/x")))
    caught = []
    for _ in range(2):
        with pytest.raises(ValidationError, match="no") as raised:
            verdicts.find(spec("a"))
        caught.append(raised.value)
    assert caught[0] is not caught[1]
    assert (caught[1].parameter, caught[1].value) == ("p", "/x")


def test_the_least_recently_used_goes_first():
    verdicts = Verdicts(1600)
    for name in "abc":
        verdicts.add(spec(name), grammar())
    verdicts.find(spec("a"))
    verdicts.add(spec("d"), grammar())
    assert [name for name in "abcd" if verdicts.find(spec(name))] == ["a", "c", "d"]


def test_bytes_stay_below_the_limit_whatever_comes():
    verdicts = Verdicts(20_000)
    for index in range(500):
        verdicts.add(spec(f"{index}"), grammar("x" * (index * 40)))
        verdicts.add(spec(f"{index}"), grammar("x" * index))
        assert verdicts.num_bytes <= 20_000
    assert len(verdicts) > 3


def test_what_is_larger_than_the_room_is_not_kept_and_drives_nothing_out():
    verdicts = Verdicts(1000)
    verdicts.add(spec("a"), grammar())
    verdicts.add(spec("b" * 1000), grammar())
    assert verdicts.find(spec("a"))
    assert len(verdicts) == 1
