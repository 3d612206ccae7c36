"""SamplingParams: defaults, normal forms, derived values, copies and the wire."""

import copy
import logging
import pickle

import msgspec
import pytest

from octavo.base.errors import ValidationError
from octavo.proto.sampling import RequestOutputKind, SamplingParams


def test_defaults_are_those_of_vllm():
    params = SamplingParams()
    assert (params.n, params.temperature, params.top_p, params.top_k, params.min_p) == (1, 1.0, 1.0, 0, 0.0)
    assert (params.max_tokens, params.min_tokens, params.seed) == (16, 0, None)
    assert params.stop_strings == []
    assert params.output_kind is RequestOutputKind.CUMULATIVE


def test_fields_are_keyword_only():
    with pytest.raises(TypeError):
        SamplingParams(2)


def test_parameters_cannot_be_changed_afterwards():
    with pytest.raises(AttributeError):
        SamplingParams().n = 2


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"temperature": 1}, {"temperature": 1.0}),
        ({"temperature": 1e-6, "top_p": 0.5, "top_k": 3, "min_p": 0.1}, {"temperature": 0.0, "top_p": 1.0, "top_k": 0}),
        ({"top_k": -1}, {"top_k": 0}),
        ({"top_k": 2**40}, {"top_k": 2**31 - 1}),
        ({"seed": -1}, {"seed": None}),
        ({"seed": 2**64 - 1}, {"seed": 2**64 - 1}),
        ({"stop": "end"}, {"stop": ["end"]}),
        ({"stop": ["a", "b", "a"]}, {"stop": ["a", "b"]}),
        ({"stop": None}, {"stop": []}),
        ({"stop_token_ids": (5, 3, 5)}, {"stop_token_ids": [5, 3]}),
        ({"logprobs": True}, {"logprobs": 1}),
        ({"logprobs": False}, {"logprobs": None}),
        ({"logprobs": -1}, {"logprobs": -1}),
        ({"logit_bias": {"7": 500, 8: -1e9}}, {"logit_bias": {7: 100.0, 8: -100.0}}),
        ({"logit_bias": {}}, {"logit_bias": None}),
        ({"output_kind": 1}, {"output_kind": RequestOutputKind.DELTA}),
        ({"max_tokens": None, "min_tokens": 10**6}, {"max_tokens": None}),
        ({"bad_words_token_ids": []}, {"bad_words_token_ids": None}),
    ],
)
def test_values_are_kept_in_one_form(given, kept):
    params = SamplingParams(**given)
    for name, value in kept.items():
        assert getattr(params, name) == value
        assert type(getattr(params, name)) is type(value)


def test_small_temperature_is_raised_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        params = SamplingParams(temperature=0.001)
    assert params.temperature == 0.01
    assert "temperature" in caplog.text


EVERYTHING = {
    "n": 2,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "repetition_penalty": 1.1,
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.05,
    "seed": 2**63 + 1,
    "stop": ["a", "ü"],
    "stop_token_ids": [2, 1],
    "bad_words": ["no"],
    "include_stop_str_in_output": True,
    "ignore_eos": True,
    "max_tokens": 9,
    "min_tokens": 3,
    "logprobs": 5,
    "prompt_logprobs": -1,
    "logprob_token_ids": [4, 2],
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "logit_bias": {3: -2.5},
    "allowed_token_ids": [1, 2, 3],
    "output_kind": RequestOutputKind.FINAL_ONLY,
    "bad_words_token_ids": [[1, 2], [3]],
}


@pytest.mark.parametrize("given", [{}, {"temperature": 0}, EVERYTHING])
def test_all_copies_equal_the_original(given):
    params = SamplingParams(**given)
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(params), type=SamplingParams)
    assert wire == copy.copy(params) == pickle.loads(pickle.dumps(params)) == params.clone() == params


def test_what_comes_over_the_wire_is_checked_too():
    with pytest.raises(ValueError, match="top_p"):
        msgspec.json.decode(b'{"top_p": 2.0}', type=SamplingParams)
    with pytest.raises(ValueError, match="structured_outputs"):
        msgspec.json.decode(b'{"structured_outputs": {}}', type=SamplingParams)


def test_clone_changes_only_what_is_named_and_checks_it():
    params = SamplingParams(temperature=0.5, n=2)
    assert params.clone(n=1) == SamplingParams(temperature=0.5)
    with pytest.raises(ValidationError, match="n=2"):
        params.clone(temperature=0)


@pytest.mark.parametrize(
    ("fields", "reads"),
    [
        ({}, True),
        ({"prompt_logprobs": 0}, False),
        ({"prompt_logprobs": 0, "skip_reading_prefix_cache": False}, False),
        ({"skip_reading_prefix_cache": True}, False),
        ({"skip_reading_prefix_cache": False}, True),
    ],
)
def test_the_prefix_cache_is_not_read_where_asked_nor_with_prompt_logprobs(fields, reads):
    assert SamplingParams(**fields).reads_prefix_cache is reads


@pytest.mark.parametrize(("skip", "reads"), [(None, True), (True, False)])
def test_a_clone_without_prompt_logprobs_keeps_only_what_was_asked_for(skip, reads):
    params = SamplingParams(prompt_logprobs=1, skip_reading_prefix_cache=skip)
    assert params.clone(prompt_logprobs=None).reads_prefix_cache is reads


def test_from_optional_takes_none_as_not_given_but_for_max_tokens():
    params = SamplingParams.from_optional(temperature=None, top_p=0.5, max_tokens=None)
    assert (params.temperature, params.top_p, params.max_tokens) == (1.0, 0.5, None)


def test_derived_values():
    params = SamplingParams(stop_token_ids=[4, 5], logprob_token_ids=[1], frequency_penalty=0.1)
    assert params.all_stop_token_ids == {4, 5}
    assert params.wants_logprobs
    assert params.has_penalties
    assert not SamplingParams().wants_logprobs
    assert not SamplingParams().has_penalties
