import json

import pytest
from fakes.tiny_models import TINY_SPECS, hf_config

from octavo.base.errors import LoadError
from octavo.config.model_spec import RopeSpec
from octavo.loading.fields import Fields
from octavo.loading.hf_config import read_generation_defaults, read_spec

BASE = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}


def spec_of(config=None, generation=None, **changes):
    return read_spec(
        Fields({**BASE, **(config or {}), **changes}, "config.json"), Fields(generation or {}, "generation_config.json")
    )


@pytest.mark.parametrize("name", TINY_SPECS)
def test_published_keys_give_the_spec(name):
    config = json.loads(json.dumps(hf_config(TINY_SPECS[name])))
    assert read_spec(Fields(config, "config.json"), Fields({}, "generation_config.json")) == TINY_SPECS[name]


@pytest.mark.parametrize(
    ("model_type", "num_kv_heads", "head_dim", "max_position"),
    [("llama", 4, 16, 2048), ("mistral", 8, 16, 131072), ("qwen2", 32, 16, 32768), ("qwen3", 32, 128, 32768)],
)
def test_absent_keys_have_the_defaults_of_their_class(model_type, num_kv_heads, head_dim, max_position):
    spec = spec_of(model_type=model_type, num_attention_heads=32, hidden_size=512)
    expected = 32 if model_type == "llama" else num_kv_heads
    assert (spec.num_kv_heads, spec.head_dim, spec.max_position) == (expected, head_dim, max_position)
    assert (spec.norm_eps, spec.rope, spec.tie_word_embeddings) == (1e-6, RopeSpec(theta=10000.0), False)


def test_null_means_as_many_kv_heads_as_heads():
    assert spec_of(model_type="mistral", num_key_value_heads=None, head_dim=None).num_kv_heads == 4


def test_the_text_part_of_a_multimodal_gemma_is_found():
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 7}
    text |= {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}
    config = {"model_type": "gemma3", "text_config": text, "eos_token_id": [1, 106]}
    spec = read_spec(Fields(config, "config.json"), Fields({}, "g"))
    assert (spec.model_type, spec.num_heads, spec.num_kv_heads, spec.head_dim) == ("gemma3_text", 8, 4, 256)
    assert (spec.vocab_size, spec.sliding_window, spec.tie_word_embeddings) == (262208, 1024, True)
    assert spec.rope == RopeSpec(theta=1e6, scaling="linear", factor=8.0)
    assert spec.rope_local == RopeSpec(theta=1e4)
    assert spec.layer_kinds.count("full") == 1
    assert (spec.attention_scale, spec.bos_token_id, spec.eos_token_ids) == (1 / 16, 2, (1, 106))


@pytest.mark.parametrize(
    ("changes", "local_layers", "window"),
    [
        ({"model_type": "llama", "sliding_window": 8}, [], None),
        ({"model_type": "mistral", "sliding_window": 8}, [0, 1, 2, 3], 8),
        ({"model_type": "mistral", "sliding_window": None}, [], None),
        ({"model_type": "mistral"}, [0, 1, 2, 3], 4096),
        ({"model_type": "qwen2", "sliding_window": 8}, [], None),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 2}, [2, 3], 8),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 4}, [], None),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 0}, [0, 1, 2, 3], 4096),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 8,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention"] * 2,
            },
            [0, 2],
            8,
        ),
        ({"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 2}, [0, 2], 8),
        ({"model_type": "gemma3_text", "sliding_window": 8}, [0, 1, 2, 3], 8),
    ],
)
def test_windows_follow_the_rules_of_each_class(changes, local_layers, window):
    spec = spec_of(num_key_value_heads=4, **changes)
    assert [layer for layer, kind in enumerate(spec.layer_kinds) if kind == "sliding_window"] == local_layers
    assert spec.sliding_window == window


@pytest.mark.parametrize(
    ("model_type", "qkv", "out"),
    [("llama", True, True), ("mistral", False, False), ("qwen2", True, False), ("qwen3", True, True)],
)
def test_attention_bias_means_what_each_class_makes_of_it(model_type, qkv, out):
    spec = spec_of(model_type=model_type, attention_bias=True, num_key_value_heads=4)
    assert (spec.attention_bias, spec.attention_out_bias) == (qkv, out)


def test_ends_are_collected_from_all_places_once():
    spec = spec_of({"eos_token_id": 7}, {"eos_token_id": [9, 7, 8]})
    assert spec.eos_token_ids == (9, 7, 8)
    assert spec_of(eos_token_id=None).eos_token_ids == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"torch_dtype": "bfloat16"}, "bfloat16"),
        ({"dtype": "float16"}, "float16"),
        ({"torch_dtype": "torch.float32"}, "float32"),
        ({}, "float32"),
    ],
)
def test_the_dtype_has_two_spellings(changes, expected):
    assert spec_of(**changes).checkpoint_dtype == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "'mamba' is not supported"),
        ({"model_type": "odd", "auto_map": {"AutoModel": "x.y"}}, "never run"),
        ({"model_type": None}, "model_type.*missing"),
        ({"model_type": "gemma3"}, "text_config"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_size": None}, "hidden_size.*missing"),
        ({"hidden_size": -64}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_key_value_heads": 3}, "does not divide"),
        ({"head_dim": 7}, "head_dim"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
        ({"rms_norm_eps": "1e-5"}, "rms_norm_eps"),
        ({"hidden_act": "relu"}, "'relu' is not supported"),
        ({"eos_token_id": "2"}, "eos_token_id"),
        ({"eos_token_id": [-1]}, "eos_token_id"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"torch_dtype": "int8"}, "torch_dtype"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["chunked_attention"] * 4}, "'chunked_attention'"),
        ({"layer_types": "full_attention"}, "layer_types"),
    ],
)
def test_a_key_that_cannot_be_honoured_is_named(changes, message):
    with pytest.raises(LoadError, match=message):
        spec_of(**changes)


def test_what_generation_config_recommends_is_kept():
    generation = {"temperature": 0.6, "top_p": 0.9, "top_k": 50, "do_sample": True, "max_new_tokens": 9, "min_p": None}
    defaults = read_generation_defaults(Fields(generation, "g"))
    assert defaults == {"temperature": 0.6, "top_p": 0.9, "top_k": 50, "max_new_tokens": 9}
    with pytest.raises(LoadError, match="temperature"):
        read_generation_defaults(Fields({"temperature": float("inf")}, "g"))


def test_lengths_that_rotary_positions_cannot_count_are_refused():
    assert spec_of(max_position_embeddings=2**24).max_position == 2**24
    with pytest.raises(LoadError, match="max_position_embeddings"):
        spec_of(max_position_embeddings=2**24 + 1)
