from __future__ import annotations

import json

import pytest

from octavo.base.errors import ConfigError
from octavo.engine.input.defaults import (
    EndTokens,
    apply_constraint_defaults,
    apply_end_tokens,
    default_max_tokens,
    default_sampling_params,
    find_end_tokens,
    read_generation_config,
)
from octavo.proto.sampling import SamplingParams


def test_switches_of_the_operator_apply_to_constraints_that_say_nothing_else():
    switches = {"disable_any_whitespace": True, "disable_additional_properties": False, "enable_in_reasoning": True}
    free = SamplingParams()
    assert apply_constraint_defaults(free, switches) is free
    plain = SamplingParams(structured_outputs={"json": {}})
    assert apply_constraint_defaults(plain, {}) is plain
    assert apply_constraint_defaults(plain, switches).structured_outputs.disable_any_whitespace
    own = SamplingParams(structured_outputs={"json": {}, "whitespace_pattern": " ?"})
    assert apply_constraint_defaults(own, switches) is own


def test_the_models_sampling_defaults_apply_and_other_keys_do_not():
    config = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_new_tokens": 32, "do_sample": True, "min_p": None}
    assert default_sampling_params(config) == SamplingParams(temperature=0.6, top_p=0.9, top_k=20, max_tokens=32)
    assert default_sampling_params({}) == SamplingParams()


def test_the_tokenizers_end_is_primary_and_the_others_stop():
    found = find_end_tokens(7, (1, 2), {"eos_token_id": [2, 7, 9]}, vocab_size=10)
    assert found == EndTokens(eos=(7,), stop=(1, 2, 9))
    assert find_end_tokens(None, (1, 2), {}, vocab_size=10) == EndTokens(eos=(1,), stop=(2,))
    assert find_end_tokens(None, (), {"eos_token_id": 5}, vocab_size=10) == EndTokens(eos=(5,))
    assert find_end_tokens(None, (), {}, vocab_size=10) == EndTokens(eos=())


def test_ends_that_the_logits_do_not_have_are_left_out():
    found = find_end_tokens(320, (2, 99999), {"eos_token_id": [-1, 3]}, vocab_size=320)
    assert found == EndTokens(eos=(2,), stop=(3,))


def test_end_tokens_join_the_callers_stop_tokens_without_doubles():
    params, eos = apply_end_tokens(SamplingParams(stop_token_ids=[3, 9]), EndTokens(eos=(7,), stop=(9, 1)))
    assert (sorted(params.stop_token_ids), eos) == ([1, 3, 9], (7,))


def test_ignore_eos_drops_the_models_ends_but_not_the_callers():
    params, eos = apply_end_tokens(SamplingParams(stop_token_ids=[3], ignore_eos=True), EndTokens(eos=(7,), stop=(9,)))
    assert (params.stop_token_ids, eos) == ([3], ())


def test_the_source_of_defaults_is_the_model_nobody_or_a_folder(tmp_path):
    of_the_model = {"temperature": 0.5, "top_k": 3}
    (tmp_path / "generation_config.json").write_text(json.dumps({"top_p": 0.5}))
    assert read_generation_config("auto", of_the_model, {"top_k": 4}) == {"temperature": 0.5, "top_k": 4}
    assert read_generation_config("vllm", of_the_model, {}) == {}
    assert read_generation_config(str(tmp_path), of_the_model, {}) == {"top_p": 0.5}
    with pytest.raises(ConfigError, match="generation_config"):
        read_generation_config(str(tmp_path / "none"), of_the_model, {})


def test_defaults_out_of_range_are_refused_with_the_way_out():
    with pytest.raises(ConfigError, match=r"temperature=9.*--generation-config vllm"):
        default_sampling_params({"temperature": 9})


def test_a_cap_of_the_models_own_is_told_from_the_default_of_the_same_number():
    own = SamplingParams().max_tokens
    assert default_max_tokens({"max_new_tokens": own}) == own
    assert default_max_tokens({"temperature": 0.5}) is None


def test_an_override_without_effect_is_refused_by_its_name():
    with pytest.raises(ConfigError, match=r"override_generation_config\.temprature=0\.5.*mean temperature"):
        read_generation_config("auto", {}, {"temprature": 0.5, "top_p": 0.9})
