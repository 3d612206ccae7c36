from __future__ import annotations

from octavo.engine.defaults import EndTokens, apply_end_tokens, default_sampling_params, find_end_tokens
from octavo.proto.sampling import SamplingParams


def test_the_models_sampling_defaults_apply_and_other_keys_do_not():
    config = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_new_tokens": 32, "do_sample": True, "min_p": None}
    assert default_sampling_params(config) == SamplingParams(temperature=0.6, top_p=0.9, top_k=20, max_tokens=32)
    assert default_sampling_params({}) == SamplingParams()


def test_the_tokenizers_end_is_primary_and_the_others_stop():
    found = find_end_tokens(7, (1, 2), {"eos_token_id": [2, 7, 9]})
    assert found == EndTokens(eos=(7,), stop=(1, 2, 9))
    assert find_end_tokens(None, (1, 2), {}) == EndTokens(eos=(1,), stop=(2,))
    assert find_end_tokens(None, (), {"eos_token_id": 5}) == EndTokens(eos=(5,))
    assert find_end_tokens(None, (), {}) == EndTokens(eos=())


def test_end_tokens_join_the_callers_stop_tokens_without_doubles():
    params, eos = apply_end_tokens(SamplingParams(stop_token_ids=[3, 9]), EndTokens(eos=(7,), stop=(9, 1)))
    assert (sorted(params.stop_token_ids), eos) == ([1, 3, 9], (7,))


def test_ignore_eos_drops_the_models_ends_but_not_the_callers():
    params, eos = apply_end_tokens(SamplingParams(stop_token_ids=[3], ignore_eos=True), EndTokens(eos=(7,), stop=(9,)))
    assert (params.stop_token_ids, eos) == ([3], ())
