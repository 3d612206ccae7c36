"""Sampling constants of rows: plain rows, special rows, biases and bans."""

import numpy as np
import pytest
from fakes.plans import sequence

from octavo.proto.sampling import SamplingParams
from octavo.runner.sampling_table import NONE_WANTED, SamplingTable, prepare_special


def special(eos=(), **fields):
    return prepare_special(SamplingParams(**fields), eos)


def banned(bias):
    return [] if bias is None else bias[0][np.isneginf(bias[1])].tolist()


def outputs(*token_ids):
    return np.array(token_ids, np.int32)


def test_plain_parameters_are_not_special():
    assert special(temperature=0.7, top_p=0.9, seed=1, logprobs=3, stop_token_ids=[4], eos=(5,)) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"repetition_penalty": 1.1},
        {"logit_bias": {1: 1.0}},
        {"min_tokens": 1, "stop_token_ids": [3]},
        {"bad_words_token_ids": [[1, 2]]},
        {"allowed_token_ids": [1]},
        {"logprob_token_ids": [1]},
    ],
)
def test_rare_parameters_are_special(fields):
    assert special(**fields) is not None


def test_min_tokens_bans_every_end_until_reached():
    found = special(eos=(9, 8), min_tokens=2, stop_token_ids=[3])
    assert banned(found.bias_after(outputs())) == [3, 8, 9]
    assert banned(found.bias_after(outputs(1))) == [3, 8, 9]
    assert found.bias_after(outputs(1, 1)) is None


def test_min_tokens_without_any_end_bans_nothing():
    assert special(min_tokens=2) is None


def test_a_bad_word_of_one_token_is_always_banned():
    assert banned(special(bad_words_token_ids=[[4]]).bias_after(outputs(1))) == [4]


def test_a_longer_bad_word_is_banned_where_it_would_be_completed():
    found = special(bad_words_token_ids=[[4, 5, 6], [5, 7], [1]])
    assert banned(found.bias_after(outputs())) == [1]
    assert banned(found.bias_after(outputs(4))) == [1]
    assert banned(found.bias_after(outputs(5))) == [1, 7]
    assert banned(found.bias_after(outputs(0, 4, 5))) == [1, 6, 7]
    assert banned(found.bias_after(outputs(4, 5, 0))) == [1]


def test_bans_win_over_biases_and_ids_stay_distinct():
    found = special(eos=(2,), min_tokens=1, logit_bias={2: 5.0, 7: -1.5, 6: 3.0}, bad_words_token_ids=[[7]])
    token_ids, values = found.bias_after(outputs())
    assert token_ids.tolist() == [2, 6, 7]
    assert values.tolist() == [-np.inf, 3.0, -np.inf]
    token_ids, values = found.bias_after(outputs(1))
    assert dict(zip(token_ids.tolist(), values.tolist(), strict=True)) == {2: 5.0, 6: 3.0, 7: -np.inf}


def test_min_tokens_still_bans_where_a_bad_word_is_completed():
    found = special(eos=(2,), min_tokens=5, bad_words_token_ids=[[4, 5]])
    assert banned(found.bias_after(outputs(4))) == [2, 5]


@pytest.fixture
def table() -> SamplingTable:
    return SamplingTable(max_num_seqs=2, vocab_size=10)


def test_constants_are_set_and_overwritten_with_the_row(table):
    first = SamplingParams(
        temperature=0.5, top_k=99, top_p=0.9, min_p=0.1, logprobs=-1, prompt_logprobs=3, min_tokens=1
    )
    assert table.admit(sequence(1, [1], sampling=first, seed=2**64 - 1, eos_token_ids=(2,))) is None
    assert (table.top_k[1], table.num_logprobs[1], table.num_prompt_logprobs[1]) == (10, 10, 3)
    assert table.seeds[1] == 2**64 - 1
    assert table.is_special[1]
    assert table.admit(sequence(1, [1], sampling=SamplingParams(temperature=0), seed=-5)) is None
    assert (table.temperature[1], table.top_p[1], table.num_logprobs[1]) == (0.0, 1.0, NONE_WANTED)
    assert table.seeds[1] == 2**64 - 5
    assert not table.is_special[1]
    assert 1 not in table.specials


@pytest.mark.parametrize(
    "fields",
    [
        {"logit_bias": {10: 1.0}},
        {"stop_token_ids": [10], "min_tokens": 1},
        {"bad_words_token_ids": [[10]]},
        {"bad_words_token_ids": [[1, 10]]},
        {"allowed_token_ids": [0, 10]},
        {"logprob_token_ids": [10]},
    ],
)
def test_ids_outside_the_vocabulary_are_a_fault_of_the_row(table, fields):
    fault = table.admit(sequence(0, [1], sampling=SamplingParams(**fields)))
    assert fault.kind == "internal"
    assert "outside the vocabulary" in fault.text


def test_a_bad_word_that_can_never_be_written_before_its_end_is_harmless(table):
    assert table.admit(sequence(0, [1], sampling=SamplingParams(bad_words_token_ids=[[10, 1]]))) is None
