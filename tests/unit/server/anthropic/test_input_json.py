import json
import time

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.server.anthropic.input_json import MAX_DEPTH, MAX_NUMBER_CHARS, InputReader, whole_input

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
FRAGMENTS = [*'{}[],:"a1.e- \n', "\\", "\\u", "d83d", "de00", "true", "nul", "l", '"x": ', '"y"', '{"']
SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def passed(text, sizes=()):
    reader, parts, start = InputReader(), [], 0
    for size in sizes or [len(text)]:
        parts.append(reader.feed(text[start : start + size]))
        start += size
    return "".join(parts) + reader.feed(text[start:])


def made_of(text):
    return json.loads(bytes(whole_input(text)))


def check(text, sizes):
    """Holds for any text; returns the object."""
    kept = passed(text)
    assert passed(text, sizes) == kept
    assert kept in text
    made = made_of(kept)
    assert made == (jiter.from_json(kept.encode(), partial_mode=True) if kept else {})
    return made


@given(OBJECTS, st.booleans(), st.sampled_from([None, 1]), SIZES)
def test_an_object_passes_as_it_is(value, ascii_only, indent, sizes):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert check(text, sizes) == value
    assert passed(text) == text


@given(OBJECTS, st.booleans(), st.integers(0, 400), SIZES)
def test_an_object_that_was_cut_is_what_the_clients_reader_makes_of_it(value, ascii_only, end, sizes):
    check(json.dumps(value, ensure_ascii=ascii_only)[:end], sizes)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), SIZES)
def test_any_text_gives_an_object(text, sizes):
    check("{" + text, sizes)
    check(text, sizes)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", {}),
        ("  ", {}),
        ("[1, 2]", {}),
        ('"{}"', {}),
        ("12", {}),
        ('{"x": "a", "y": "b', {"x": "a"}),
        ('{"x": "a", "y', {"x": "a"}),
        ('{"x": [1, {"y": tru', {"x": [1, {}]}),
        ('{"x": [1, 23', {"x": [1]}),
        ('{"x": 1, y: 2}', {"x": 1}),
        ('{"x": 1, "y": \'a\'}', {"x": 1}),
        ('{"x": 1, "y": "a\nb"}', {"x": 1}),
        ('{"x": 1,}', {"x": 1}),
        ('{"x": [1]]', {"x": [1]}),
        ('{"x": 1} and more', {"x": 1}),
        ('{"x": NaN}', {}),
        ('{"x": 01}', {}),
        ('{"x": "\\ud83d\\ude00"}', {"x": "\U0001f600"}),
        ('{"x": 1, "y": "\\ude00"}', {"x": 1}),
        ('{"x": 1, "y": "\\q"}', {"x": 1}),
    ],
)
def test_what_is_whole_counts_and_what_is_not_does_not(text, made):
    assert check(text, [1] * len(text)) == made


def test_a_string_is_passed_on_while_it_is_written():
    reader = InputReader()
    assert [reader.feed(piece) for piece in (' {"x"', ': "ab', "c\\", "u00", "e9d", '"}', "x")] == [
        '{"x"', ': "ab', "c", "", "\\u00e9d", '"}', ""]  # fmt: skip


def test_a_number_is_passed_on_when_it_has_ended():
    reader = InputReader()
    assert [reader.feed(piece) for piece in ('{"x": 1', "2", "3", ",")] == ['{"x": ', "", "", "123,"]


@pytest.mark.parametrize("text", ['{"x":' * 300 + "1" + "}" * 300, '{"x": ' + "[" * 300, '{"x": ' + "1" * 300 + "}"])
def test_depth_and_digits_are_bounded(text):
    made = check(text, [7] * 200)
    assert json.dumps(made).count("[") + json.dumps(made).count("{") <= MAX_DEPTH
    assert str(MAX_NUMBER_CHARS * "1") not in json.dumps(made)


@pytest.mark.parametrize("piece", ["a", "\\n", "é", "\\u00e9"])
def test_the_time_is_linear(piece):
    text = '{"x": "' + piece * 20_000
    reader, started = InputReader(), time.process_time()
    for char in text:
        reader.feed(char)
    assert time.process_time() - started < 3.0
    assert reader.num_whole == 1
