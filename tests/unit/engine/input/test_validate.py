from __future__ import annotations

import re

import pytest

from octavo.base.errors import ValidationError
from octavo.engine.input.validate import RequestLimits, check_prompt_ids, check_sampling, fit_max_tokens
from octavo.proto.sampling import SamplingParams

LIMITS = RequestLimits(vocab_size=100, max_model_len=10, max_logprobs=5)


@pytest.mark.parametrize("bad", [100, -1, 2**31, 2**63, 1.5, True, "3", None])
def test_a_bad_prompt_id_is_named_with_its_place(bad):
    with pytest.raises(ValidationError, match=re.escape(f"prompt_token_ids[1]={bad!r}")) as caught:
        check_prompt_ids([0, bad, 99], LIMITS)
    assert caught.value.parameter == "prompt_token_ids"
    assert caught.value.value is bad


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValidationError, match="prompt has no tokens"):
        check_prompt_ids([], LIMITS)


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("stop_token_ids", {"stop_token_ids": [3, 100]}),
        ("allowed_token_ids", {"allowed_token_ids": [100]}),
        ("logprob_token_ids", {"logprob_token_ids": [100]}),
        ("logit_bias", {"logit_bias": {100: 1.0}}),
        ("logprobs", {"logprobs": 6}),
        ("logprobs", {"logprobs": -1}),
        ("prompt_logprobs", {"prompt_logprobs": 6}),
    ],
)
def test_what_the_model_does_not_have_is_refused_by_name(parameter, values):
    with pytest.raises(ValidationError) as caught:
        check_sampling(SamplingParams(**values), LIMITS)
    assert caught.value.parameter == parameter


def test_the_edges_are_allowed():
    check_prompt_ids([0, 99], LIMITS)
    check_sampling(SamplingParams(stop_token_ids=[0, 99], logit_bias={99: 1.0}, logprobs=5, prompt_logprobs=0), LIMITS)
    unlimited = RequestLimits(vocab_size=100, max_model_len=10, max_logprobs=-1)
    check_sampling(SamplingParams(logprobs=-1), unlimited)


@pytest.mark.parametrize(("num_prompt", "max_tokens", "expected"), [(9, None, 1), (9, 1, 1), (4, None, 6), (4, 50, 6)])
def test_max_tokens_is_what_the_context_has_room_for(num_prompt, max_tokens, expected):
    assert fit_max_tokens(num_prompt, max_tokens, LIMITS) == expected


def test_a_prompt_as_long_as_the_context_is_refused_in_the_words_clients_look_for():
    with pytest.raises(ValidationError) as caught:
        fit_max_tokens(10, 4, LIMITS)
    message = str(caught.value)
    assert message.startswith(
        "This model's maximum context length is 10 tokens. However, you requested 4 output tokens"
    )
    assert "your prompt contains 10 input tokens" in message
    assert "14 tokens in total" in message
    assert caught.value.parameter == "input_tokens"


def test_strict_lengths_refuse_what_lenient_ones_cut():
    assert fit_max_tokens(4, 6, LIMITS, is_strict=True) == 6
    with pytest.raises(ValidationError, match="you requested 7 output tokens"):
        fit_max_tokens(4, 7, LIMITS, is_strict=True)
