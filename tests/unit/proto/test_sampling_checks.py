"""What a single sampling parameter may not be, and which do not go together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import ValidationError
from octavo.proto.sampling import SamplingParams
from octavo.proto.sampling_checks import NORMALISERS

FLOATS = ["temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"]
INTS = ["n", "max_tokens", "min_tokens", "top_k", "seed"]
FLAGS = ["include_stop_str_in_output", "ignore_eos", "detokenize", "skip_special_tokens", "skip_reading_prefix_cache"]


def assert_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        SamplingParams(**{name: value})
    assert caught.value.parameter.split("[")[0] == name
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "0.7", True, None, [1.0]])
def test_a_number_must_be_a_finite_number(name, value):
    assert_refused(name, value)


@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize("value", [True, "3", 3.0, 16.5, [1], 10**30, math.nan])
def test_a_count_must_be_a_whole_number(name, value):
    assert_refused(name, value)


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [1, 0, "yes", []])
def test_a_flag_must_be_true_or_false(name, value):
    assert_refused(name, value)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("n", [1, 16384], [0, -1, 16385, 10**9]),
        ("temperature", [0, 2.0], [-0.1, 2.01]),
        ("top_p", [1.0, 1e-9], [0, 1.5, -0.1]),
        ("top_k", [-1, 0, 1, 2**40], [-2]),
        ("min_p", [0, 1], [-0.1, 1.1]),
        ("presence_penalty", [2.0, -2.0], [2.1, 3, -2.1]),
        ("frequency_penalty", [2.0, -2.0], [2.1, -2.1]),
        ("repetition_penalty", [0.01, 1.0, 10], [0, -1, 1e308]),
        ("seed", [-1, 0, -(2**63), 2**64 - 1, None], [-(2**63) - 1, 2**64]),
        ("max_tokens", [1, 2**31 - 1, None], [0, -1, 2**31]),
        ("logprobs", [0, 20, -1, None], [-2, 2**31, 4294967297, "5", 1.0]),
        ("prompt_logprobs", [0, 20, -1, None], [-2, 2**32]),
        ("stop", ["x", ["x"] * 16, [], None, "x" * 256], ["", [""], [None], {}, ["x"] * 17, "x" * 257, 5, "ü" * 129]),
        ("stop_token_ids", [[0, 2**31 - 1], []], [[-1], [2**31], [1.5], [True], list(range(1025)), "12", 3]),
        ("bad_words", [["a"], []], ["a", [""], [3], ["a"] * 129, ["a" * 1025]]),
        ("bad_words_token_ids", [[[1], [2, 3]]], [[[]], [[-1]], [[1] * 1025], [3]]),
        ("allowed_token_ids", [[1], list(range(5000))], [[], [-1], [True], "ab"]),
        ("logprob_token_ids", [[1], list(range(128))], [[], [-1], list(range(129))]),
        ("logit_bias", [{1: 5}, {"1": 5}, {}], [{-1: 1}, {"abc": 1}, {"-1": 1}, {"9" * 20: 1}, {1: math.nan}, [1]]),
        ("logit_bias", [dict.fromkeys(range(1024), 1)], [dict.fromkeys(range(1025), 1), {1: "x"}, {True: 1}]),
        ("output_kind", [0, 2], [3, True, "delta"]),
    ],
)
def test_ranges_and_limits(name, good, bad):
    for value in good:
        SamplingParams(**{name: value, **({"temperature": 1.0} if name != "temperature" else {})})
    for value in bad:
        assert_refused(name, value)


def test_numpy_numbers_are_numbers():
    params = SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3), stop_token_ids=np.array([1, 2]))
    assert (params.temperature, params.top_k, params.stop_token_ids) == (0.5, 3, [1, 2])
    assert type(params.temperature) is float
    assert type(params.top_k) is int


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"n": 2, "temperature": 0}, "n"),
        ({"min_tokens": 17}, "min_tokens"),
        ({"stop": "x", "detokenize": False}, "stop"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(fields, parameter):
    with pytest.raises(ValidationError) as caught:
        SamplingParams(**fields)
    assert caught.value.parameter == parameter


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**32, 2**63, 2**64, -1, 10**30]),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.one_of(st.integers(), st.text(), st.lists(st.integers()))),
    st.dictionaries(st.one_of(st.integers(), st.text()), st.floats()),
)


@given(name=st.sampled_from(sorted(NORMALISERS)), value=ANYTHING)
def test_any_value_is_taken_or_refused_and_nothing_else(name, value):
    try:
        params = SamplingParams(**{name: value})
    except ValidationError:
        return
    assert params.clone() == params
