"""Stop strings: exact cut, nothing leaked, nothing lost, however the text is split."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.engine.output.stop import StopMatcher

STOPS = ["own fox", "\nUser:", "ab", "aab", "🙂x", "abab", "b"]


def run(stops, pieces, *, include_stop=False, free_pieces=0):
    """All shown text and the stop string, if one was found."""
    matcher = StopMatcher(stops, include_stop=include_stop)
    shown = ""
    for number, piece in enumerate(pieces):
        text, match = matcher.feed(piece, may_stop=number >= free_pieces)
        shown += text
        if match is not None:
            return shown, match.stop
    return shown + matcher.flush(), None


def first_end(text, stops):
    """Specification: (cut text, stop) of the match that ends first, the longest of those; or None."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            stop = max(found, key=len)
            return text[: end - len(stop)], stop
    return text, None


def test_a_stop_string_split_over_pieces_is_cut_exactly():
    assert run(["own fox"], ["The quick br", "own", " f", "ox jumps"]) == ("The quick br", "own fox")


def test_the_stop_string_is_kept_when_asked_for():
    assert run(["own fox"], ["a br", "own", " fox jumps"], include_stop=True) == ("a brown fox", "own fox")


def test_a_false_start_is_shown_in_the_end():
    assert run(["\nUser:"], ["Hello\nUs", "ers"]) == ("Hello\nUsers", None)
    assert run(["\nUser:"], ["Hello\nUs"]) == ("Hello\nUs", None)


def test_only_a_proper_prefix_of_a_stop_string_is_held_back():
    matcher = StopMatcher(["\nUser:"])
    assert matcher.feed("Hello") == ("Hello", None)
    assert matcher.feed("\n") == ("", None)
    assert matcher.feed("x") == ("\nx", None)


def test_nothing_is_held_back_when_the_stop_string_is_included():
    assert StopMatcher(["abc"], include_stop=True).feed("xab") == ("xab", None)


def test_the_match_that_ends_first_wins():
    assert run(["abcd", "bc"], ["abcd"]) == ("a", "bc")


def test_of_two_that_end_together_the_longer_wins():
    assert run(["b", "aab"], ["xaab"]) == ("x", "aab")


def test_a_match_that_may_not_stop_is_passed_over_and_the_next_one_counts():
    assert run(["ab"], ["xab", "y", "ab"], free_pieces=1) == ("xaby", "ab")


def test_a_match_that_ends_after_the_free_pieces_counts_though_it_began_in_them():
    assert run(["ab"], ["xa", "b"], free_pieces=1) == ("x", "ab")


@pytest.mark.parametrize("include_stop", [False, True])
@given(data=st.data())
@settings(deadline=None)
def test_the_outcome_does_not_depend_on_the_split(include_stop, data):
    stops = data.draw(st.lists(st.sampled_from(STOPS), min_size=1, max_size=4, unique=True))
    pieces = data.draw(st.lists(st.text(alphabet="ab \nUser:🙂xownf", max_size=6), max_size=12))
    expected, stop = first_end("".join(pieces), stops)
    if include_stop and stop is not None:
        expected += stop
    assert run(stops, pieces, include_stop=include_stop) == (expected, stop)


@given(pieces=st.lists(st.text(alphabet="aab", max_size=3), max_size=12))
@settings(deadline=None)
def test_at_most_the_longest_stop_less_one_character_is_held_back(pieces):
    matcher = StopMatcher(["aabaa", "bbb"])
    shown = fed = ""
    for piece in pieces:
        text, match = matcher.feed(piece)
        shown, fed = shown + text, fed + piece
        if match is not None:
            return
        assert fed.startswith(shown)
        assert len(fed) - len(shown) <= 4
