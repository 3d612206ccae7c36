import pytest

from octavo.base.errors import LoadError
from octavo.config.model_spec import RopeSpec
from octavo.loading.fields import Fields
from octavo.loading.hf_rope import read_rope

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
LLAMA3_SPEC = RopeSpec(theta=5e5, scaling="llama3", factor=8.0, original_max_position=8192)


def rope_of(model_type="llama", **config):
    return read_rope(Fields(config, "config.json"), model_type)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, RopeSpec(theta=1e4)),
        ({"rope_theta": 5e5}, RopeSpec(theta=5e5)),
        ({"rope_theta": 5e5, "rope_scaling": None}, RopeSpec(theta=5e5)),
        ({"rope_theta": 5e5, "rope_scaling": LLAMA3}, LLAMA3_SPEC),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 5e5}}, LLAMA3_SPEC),
        ({"rope_parameters": {"rope_theta": 7.0, "rope_type": "default"}}, RopeSpec(theta=7.0)),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, RopeSpec(theta=1e4, scaling="linear", factor=2.0)),
        ({"rope_scaling": {"rope_type": "default"}}, RopeSpec(theta=1e4)),
    ],
)
def test_old_and_new_spellings_are_read(config, expected):
    assert rope_of(**config) == (expected, None)


@pytest.mark.parametrize(
    "config",
    [
        {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        },
    ],
)
def test_gemma3_has_one_base_for_each_kind_of_layer(config):
    full = RopeSpec(theta=1e6, scaling="linear", factor=8.0)
    assert rope_of("gemma3_text", **config) == (full, RopeSpec(theta=1e4))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "'yarn' is not supported"),
        ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, "'dynamic' is not supported"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor.*missing"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor"),
        ({"rope_scaling": LLAMA3 | {"high_freq_factor": 1.0}}, "high_freq_factor"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor.*missing"),
        ({"rope_scaling": [1]}, "rope_scaling"),
        ({"rope_theta": float("nan")}, "rope_theta"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
    ],
)
def test_what_is_not_computed_is_refused(config, message):
    with pytest.raises(LoadError, match=message):
        rope_of(**config)
