import math

import numpy as np
import pytest
from fakes.gguf_file import ARRAY, CONTROL, FLOAT32, INT32, NORMAL, STRING, UINT32, byte_level_pieces, tiny_llama_gguf

from octavo.base.errors import LoadError
from octavo.config.model_spec import RopeSpec
from octavo.loading.gguf import GgufFile
from octavo.loading.gguf_spec import read_spec


def spec_of(builder, tmp_path):
    return read_spec(GgufFile(builder.write(tmp_path / "model.gguf")))


def test_shapes_and_constants_of_a_llama(tmp_path):
    spec = spec_of(tiny_llama_gguf(), tmp_path)
    assert (spec.model_type, spec.vocab_size, spec.hidden_size, spec.intermediate_size) == ("llama", 260, 32, 64)
    assert (spec.num_layers, spec.num_heads, spec.num_kv_heads, spec.head_dim) == (1, 4, 2, 8)
    assert (spec.max_position, spec.norm_eps, spec.rope) == (64, 1e-5, RopeSpec(theta=10000.0))
    assert (spec.layer_kinds, spec.sliding_window) == (("full",), None)
    assert (spec.bos_token_id, spec.eos_token_ids) == (1, (2,))
    assert spec.tie_word_embeddings
    assert not any([spec.attention_bias, spec.qk_norm, spec.mlp_bias, spec.attention_out_bias])
    assert spec.checkpoint_dtype == "float32"


def test_what_the_tensors_say_wins(tmp_path):
    builder = tiny_llama_gguf("qwen2")
    builder.add_tensor("output.weight", (32, 260)).add_tensor("blk.0.attn_q.bias", (32,))
    spec = spec_of(builder, tmp_path)
    assert not spec.tie_word_embeddings
    assert (spec.model_type, spec.attention_bias) == ("qwen2", True)
    assert spec_of(tiny_llama_gguf("qwen3").add_tensor("blk.0.attn_q_norm.weight", (8,)), tmp_path).qk_norm


def test_the_head_size_may_be_given(tmp_path):
    builder = tiny_llama_gguf().add("llama.attention.key_length", UINT32, 16)
    spec = spec_of(builder, tmp_path)
    assert (spec.head_dim, spec.attention_scale) == (16, 0.25)
    builder = tiny_llama_gguf().add("llama.rope.dimension_count", UINT32, 8)
    assert spec_of(builder, tmp_path).head_dim == 8


def test_gemma3_has_windows_two_bases_and_a_scaled_embedding(tmp_path):
    builder = tiny_llama_gguf("gemma3")
    builder.add("gemma3.block_count", UINT32, 7).add("gemma3.attention.sliding_window", UINT32, 16)
    builder.add("gemma3.rope.freq_base", FLOAT32, 1e6)
    builder.add("gemma3.rope.scaling.type", STRING, "linear").add("gemma3.rope.scaling.factor", FLOAT32, 8.0)
    spec = spec_of(builder, tmp_path)
    assert spec.model_type == "gemma3_text"
    assert [kind == "full" for kind in spec.layer_kinds] == [False] * 5 + [True, False]
    assert spec.sliding_window == 16
    assert spec.rope == RopeSpec(theta=1e6, scaling="linear", factor=8.0)
    assert spec.rope_local == RopeSpec(theta=1e4)
    assert (spec.activation, spec.embedding_scale) == ("gelu_tanh", math.sqrt(32))


def test_a_window_of_a_llama_holds_in_every_layer(tmp_path):
    spec = spec_of(tiny_llama_gguf().add("llama.attention.sliding_window", UINT32, 16), tmp_path)
    assert (spec.layer_kinds, spec.sliding_window) == (("sliding_window",), 16)


def test_rotary_divisors_become_part_of_the_spec(tmp_path):
    factors = np.array([1, 1.5, 4, 8], np.float32)
    spec = spec_of(tiny_llama_gguf().add_tensor("rope_freqs.weight", (4,), 0, factors.tobytes()), tmp_path)
    assert spec.rope.freq_factors == (1.0, 1.5, 4.0, 8.0)


def test_well_known_end_pieces_end_a_text_too(tmp_path):
    builder = tiny_llama_gguf()
    pieces = ["<|endoftext|>", *byte_level_pieces()[1:]]
    builder.add("tokenizer.ggml.tokens", ARRAY, (STRING, pieces))
    assert spec_of(builder, tmp_path).eos_token_ids == (2, 0)
    builder.add("tokenizer.ggml.eot_token_id", UINT32, 1)
    assert spec_of(builder, tmp_path).eos_token_ids == (2, 1, 0)
    kinds = [NORMAL, CONTROL, CONTROL] + [NORMAL] * (len(pieces) - 3)
    builder.add("tokenizer.ggml.token_type", ARRAY, (INT32, kinds))
    assert spec_of(builder, tmp_path).eos_token_ids == (2, 1)


@pytest.mark.parametrize(
    ("key", "kind", "value", "message"),
    [
        ("general.architecture", STRING, "mamba", "'mamba' is not supported"),
        ("general.architecture", UINT32, 3, "general.architecture"),
        ("split.count", UINT32, 3, "split.count"),
        ("llama.expert_count", UINT32, 8, "expert_count"),
        ("llama.embedding_length", UINT32, 0, "embedding_length"),
        ("llama.embedding_length", UINT32, 64, "token_embd.weight"),
        ("llama.block_count", UINT32, 2**31, "block_count"),
        ("llama.block_count", STRING, "1", "block_count"),
        ("llama.attention.head_count", ARRAY, (UINT32, [4, 4]), "head_count"),
        ("llama.attention.head_count_kv", UINT32, 3, "does not divide"),
        ("llama.attention.key_length", UINT32, 7, "even"),
        ("llama.attention.value_length", UINT32, 16, "value_length"),
        ("llama.rope.dimension_count", UINT32, 7, "even"),
        ("llama.rope.scaling.type", STRING, "yarn", "'yarn' is not supported"),
        ("llama.rope.freq_base", FLOAT32, math.nan, "rope.freq_base"),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT32, math.inf, "epsilon"),
        ("llama.context_length", UINT32, 0, "context_length"),
        ("tokenizer.ggml.eos_token_id", STRING, "x", "eos_token_id"),
    ],
)
def test_a_key_that_cannot_be_honoured_is_named(tmp_path, key, kind, value, message):
    with pytest.raises(LoadError, match=message):
        spec_of(tiny_llama_gguf().add(key, kind, value), tmp_path)


@pytest.mark.parametrize("key", ["general.architecture", "llama.block_count", "llama.embedding_length"])
def test_a_missing_key_is_named(tmp_path, key):
    with pytest.raises(LoadError, match="is missing"):
        spec_of(tiny_llama_gguf().drop(key), tmp_path)


@pytest.mark.parametrize("data", [[1, 2, 3], [1, 2, 0, 4], [1, 2, -1, 4], [1, math.nan, 2, 3]])
def test_rotary_divisors_must_fit_and_be_positive(tmp_path, data):
    values = np.array(data, np.float32)
    with pytest.raises(LoadError, match="rope_freqs"):
        spec_of(tiny_llama_gguf().add_tensor("rope_freqs.weight", (len(data),), 0, values.tobytes()), tmp_path)


def test_an_embedding_is_needed(tmp_path):
    with pytest.raises(LoadError, match="token_embd"):
        spec_of(tiny_llama_gguf().drop_tensor("token_embd.weight"), tmp_path)


def test_lengths_that_rotary_positions_cannot_count_are_refused(tmp_path):
    with pytest.raises(LoadError, match="context_length"):
        spec_of(tiny_llama_gguf().add("llama.context_length", UINT32, 2**24 + 1), tmp_path)
