import ast
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.parsers.python_literal import MAX_DEPTH, read_keywords, read_literal

literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=5), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


@given(value=literals)
def test_what_python_writes_is_read_as_the_same_value(value):
    assert json.loads(read_literal(repr(value))) == value


@given(text=st.text(alphabet="'\"\\nrtx0u1aé()[]{},:=. -+eTrue", max_size=40))
def test_every_text_is_a_value_that_python_reads_alike_or_an_error(text):
    try:
        found = json.loads(read_literal(text))
    except ValueError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            meant = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError):
            return
    assert found == json.loads(json.dumps(meant))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "{}"),
        (" a = 1 ", '{"a": 1}'),
        ("a=1, b='x',", '{"a": 1, "b": "x"}'),
        ("a=(1,)", '{"a": [1]}'),
        ("a=()", '{"a": []}'),
        ("a=0x1F, b=1_0, c=1., d=+2", '{"a": 31, "b": 10, "c": 1.0, "d": 2}'),
        ("a={1: 'x', 'y': [null, true]}", '{"a": {"1": "x", "y": [null, true]}}'),
        (r"a='\x41\101\N'", r'{"a": "AA\\N"}'),
        (r"a='\U00110000\ud800'", '{"a": "\ufffd\ufffd"}'),
    ],
)
def test_keywords_become_an_object(text, expected):
    assert read_keywords(text) == expected


@pytest.mark.parametrize(
    "text",
    ["1", "a", "a=", "a=b", "a=1 b=2", "a=1,,", "a='x", "a=[1", "a={1}", "a=1.e999", "a=f(1)", "**a", "a=1]", "a=-"],
)
def test_what_is_no_literal_is_an_error(text):
    with pytest.raises(ValueError, match=r".+"):
        read_keywords(text)


def test_nesting_is_limited():
    assert read_literal("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="too deep"):
        read_literal("[" * 100_000)
