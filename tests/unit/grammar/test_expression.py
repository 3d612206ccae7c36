import contextlib
import time

import pytest
from fakes.matching import compiled, takes

from octavo.base.errors import ValidationError
from octavo.grammar.expression import check_expression
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError

LIMITS = GrammarLimits()


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[", "invalid regex: unclosed character class"),
        ("(a", "not closed"),
        ("a)", "not opened"),
        ("*", "invalid regex"),
        ("(?<=a)b", "look-ahead and look-behind"),
        ("a(?!b)", "look-ahead and look-behind"),
        (r"(a)\1", r"back-references such as \\1"),
        (r"(?P<n>a)\k<n>", "back-references"),
        (r"\p{Foo}", r"unknown Unicode property in \\p"),
        (r"\bword\b", "word boundaries"),
        ("((a{1,500}){1,500}){1,500}", "written out"),
        (".{0,100000}x", "written out"),
        ("(" * 101 + "a" + ")" * 101, "deeper than 100"),
        ("(" * 30000 + "a" + ")" * 30000, "deeper than 100"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_words_of_our_own(pattern, words):
    with pytest.raises(ValidationError, match=words) as caught:
        compiled(regex=pattern)
    assert caught.value.parameter == "structured_outputs.regex"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^abc$", "abc"),
        ("a/b", "a/b"),
        ("a\nb", "a\nb"),
        (r"\(?[?=]\\1", "?\\1"),
        (r"[(?=)]", "="),
        (r"\d{3}-\w+\s", "123-a_B "),
        (r"(?i)yes|no", "YES"),
        (r"(?P<year>\d{4})", "2024"),
        (r"\p{Lu}é", "Éé"),
        ("(a|aa)*c", "aaac"),
        (r"x{2,3}", "xx"),
    ],
)
def test_the_whole_text_matches_the_expression(pattern, text):
    grammar = compiled(regex=pattern)
    assert takes(grammar, text)
    assert not takes(grammar, text + "!")


def test_digits_are_those_of_ascii():
    assert not takes(compiled(regex=r"\d"), "٣")


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        ("a{5}", 5),
        ("(ab){2,10}", 20),
        ("((ab){3}c){2}", 14),
        ("[a-z]{4}|x", 4),
        ("(ab|c){3}d|e", 7),
        ("a*b+", 2),
        (r"\x{41}{3}", 3),
    ],
)
def test_the_length_counts_repetitions_written_out(pattern, size):
    assert check_expression(pattern, LIMITS) == size


@pytest.mark.parametrize("piece", ["[", r"\p{", "(?<a", "[:a", "[a-", "{1,"])
def test_an_expression_that_never_closes_what_it_opens_takes_linear_time(piece):
    start_s = time.thread_time()
    with contextlib.suppress(SpecError):
        check_expression(piece * (128_000 // len(piece)), GrammarLimits(max_expression_size=1 << 30))
    # Quadratic work would take half a minute and more.
    assert time.thread_time() - start_s < 5


def test_an_empty_expression_is_refused():
    with pytest.raises(SpecError, match="empty"):
        check_expression("", LIMITS)
