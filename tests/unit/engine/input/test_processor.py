from __future__ import annotations

import pytest
from fakes.byte_tokenizer import EOS, ByteTokenizer
from fakes.toy_grammar import ToyGrammars, prepared

from octavo.base.errors import InvariantError, ValidationError
from octavo.engine.input.defaults import EndTokens
from octavo.engine.input.processor import InputProcessor, ModelDefaults
from octavo.engine.input.prompts import Prompt
from octavo.engine.input.seeds import derive_child_seed, derive_request_seed
from octavo.engine.input.validate import RequestLimits
from octavo.proto.sampling import SamplingParams

PROMPT = Prompt(token_ids=[1, 2, 3], text="abc", cache_salt="salt")


def make(sampling=None, prepare_grammar=None, **limits):
    return InputProcessor(
        ByteTokenizer(),
        RequestLimits(**({"vocab_size": 258, "max_model_len": 32, "max_logprobs": 20} | limits)),
        ModelDefaults(sampling=sampling or SamplingParams(), end_tokens=EndTokens(eos=(EOS,), stop=(9,))),
        engine_seed=5,
        prepare_grammar=prepare_grammar,
    )


def prepare(inputs, sampling=None, **options):
    return inputs.prepare(PROMPT, sampling, request_id="r", arrival_s=1.5, **options)


def test_a_request_is_final_when_it_is_prepared():
    request = prepare(make(), SamplingParams(max_tokens=None, seed=7, stop="x"), priority=3)
    (sequence,) = request.sequences
    assert sequence.request_id == request.request_id == "r"
    assert (sequence.max_tokens, sequence.sampling.max_tokens) == (29, 29)
    assert (sequence.seed, sequence.eos_token_ids, sequence.sampling.stop_token_ids) == (7, (EOS,), [9])
    assert (sequence.cache_salt, sequence.priority, sequence.arrival_s) == ("salt", 3, 1.5)


def test_the_models_defaults_hold_when_nothing_is_given():
    defaults = SamplingParams(temperature=0.3, max_tokens=4)
    assert prepare(make(defaults)).sampling == defaults


def test_requests_without_a_seed_get_one_from_the_engines_and_their_number():
    inputs = make()
    seeds = [prepare(inputs).sequences[0].seed, prepare(inputs, SamplingParams(seed=7)).sequences[0].seed]
    seeds.append(prepare(inputs).sequences[0].seed)
    assert seeds == [derive_request_seed(5, 0), 7, derive_request_seed(5, 1)]


def test_n_is_fanned_out_with_a_seed_each_and_prompt_logprobs_once():
    request = prepare(make(), SamplingParams(n=3, seed=7, prompt_logprobs=2))
    assert [s.seed for s in request.sequences] == [derive_child_seed(7, i) for i in range(3)]
    assert len({s.request_id for s in request.sequences}) == 3
    assert [s.sampling.n for s in request.sequences] == [1, 1, 1]
    assert [s.sampling.prompt_logprobs for s in request.sequences] == [2, None, None]
    assert [s.sampling.reads_prefix_cache for s in request.sequences] == [False, True, True]


def test_an_engine_is_told_what_a_constraint_became_and_not_what_it_was():
    params = SamplingParams(structured_outputs={"regex": "5 6"}, n=2)
    request = prepare(make(prepare_grammar=ToyGrammars().prepare), params)
    for sequence in request.sequences:
        assert sequence.sampling.structured_outputs is None
        assert sequence.sampling.prepared_grammar == prepared(params.structured_outputs.spec)
        assert sequence.sampling.is_constrained
    assert request.sampling == params


def test_a_grammar_that_was_prepared_elsewhere_is_taken():
    params = SamplingParams(structured_outputs={"regex": "5 6"})
    grammar = prepared(make().constraint_of(params))
    request = prepare(make(), params, grammar=grammar)
    assert request.sequences[0].sampling.prepared_grammar is grammar
    assert make().constraint_of(SamplingParams()) is None


def test_a_constraint_that_nobody_prepared_is_no_free_text():
    with pytest.raises(InvariantError):
        prepare(make(), SamplingParams(structured_outputs={"regex": "5 6"}))


def test_bad_words_are_tokenized_with_and_without_a_space_before_them():
    request = prepare(make(), SamplingParams(bad_words=["ab", " ab", "c"]))
    forms = {bytes(ids) for ids in request.sequences[0].sampling.bad_words_token_ids}
    assert forms == {b"ab", b" ab", b"c", b" c"}


def test_min_tokens_is_cut_with_max_tokens():
    request = prepare(make(max_model_len=5), SamplingParams(max_tokens=10, min_tokens=8))
    assert (request.sequences[0].max_tokens, request.sequences[0].sampling.min_tokens) == (2, 2)


def test_a_bad_request_raises():
    with pytest.raises(ValidationError, match="maximum context length is 3"):
        prepare(make(max_model_len=3))
    with pytest.raises(ValidationError, match="stop_token_ids"):
        prepare(make(), SamplingParams(stop_token_ids=[258]))
