import numpy as np
import pytest
from fakes.gguf_file import ARRAY, HEAD_DIM, STRING, byte_level_pieces, tiny_llama_gguf

from octavo.base.errors import LoadError
from octavo.loading import open_checkpoint

Q = "model.layers.0.self_attn.q_proj.weight"


def opened(builder, tmp_path):
    return open_checkpoint(builder.write(tmp_path / "model.gguf"))


def raw(builder, name):
    tensor = next(tensor for tensor in builder.tensors if tensor.name == name)
    return np.frombuffer(tensor.data, np.float32).reshape(tensor.dims[::-1])


def test_tensors_have_hugging_face_names(tmp_path):
    builder = tiny_llama_gguf()
    with opened(builder, tmp_path) as checkpoint:
        assert len(checkpoint.tensor_names) == len(builder.tensors)
        assert checkpoint.has_tensor("model.norm.weight")
        assert not checkpoint.has_tensor("lm_head.weight")
        up = checkpoint.tensor("model.layers.0.mlp.up_proj.weight")
        assert (up.shape, up.storage) == ((64, 32), "float32")
        assert np.array_equal(up.read_f32(), raw(builder, "blk.0.ffn_up.weight"))


def test_rows_of_q_and_k_are_put_in_order_for_llama_only(tmp_path):
    for architecture in ("llama", "qwen3"):
        builder = tiny_llama_gguf(architecture)
        written = raw(builder, "blk.0.attn_q.weight")
        with opened(builder, tmp_path) as checkpoint:
            rows = checkpoint.tensor(Q).read_f32()
        pairs = written.reshape(4, HEAD_DIM // 2, 2, 32).swapaxes(1, 2).reshape(32, 32)
        assert np.array_equal(rows, pairs if architecture == "llama" else written)


def test_norms_of_gemma3_lose_their_one(tmp_path):
    builder = tiny_llama_gguf("gemma3").add_tensor(
        "blk.0.attn_q_norm.weight", (8,), 0, np.ones(8, np.float32).tobytes()
    )
    with opened(builder, tmp_path) as checkpoint:
        assert not checkpoint.tensor("model.layers.0.self_attn.q_norm.weight").read_f32().any()
        expected = raw(builder, "output_norm.weight") - np.float32(1)
        assert np.array_equal(checkpoint.tensor("model.norm.weight").read_f32(), expected)


def test_two_matrices_stay_two(tmp_path):
    with opened(tiny_llama_gguf().add_tensor("output.weight", (32, 260)), tmp_path) as checkpoint:
        assert checkpoint.has_tensor("lm_head.weight")
        assert not checkpoint.spec.tie_word_embeddings


def test_a_missing_tensor_is_named(tmp_path):
    checkpoint = opened(tiny_llama_gguf().drop_tensor("blk.0.attn_q.weight"), tmp_path)
    with checkpoint, pytest.raises(LoadError, match=r"model\.gguf: tensor 'model.*q_proj.weight' is missing"):
        checkpoint.tensor(Q)


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (tiny_llama_gguf().add_tensor("blk.0.ffn_gate_inp.weight", (4,)), "'blk.0.ffn_gate_inp.weight' has no place"),
        (tiny_llama_gguf().add_tensor("blk.00.attn_q.weight", (32, 32)), "different spellings"),
        (tiny_llama_gguf().add_tensor("blk.0.attn_k.weight", (32, 15)), "'blk.0.attn_k.weight' has 15 rows"),
        (
            tiny_llama_gguf().add("tokenizer.ggml.tokens", ARRAY, (STRING, [*byte_level_pieces(), "x"])),
            "261 pieces.*260 rows",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path, builder, message):
    with pytest.raises(LoadError, match=message):
        opened(builder, tmp_path)


def test_the_tokenizer_and_the_template_come_from_the_file(tmp_path):
    with opened(tiny_llama_gguf(), tmp_path) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
        assert tokenizer.decode(tokenizer.encode("hello")) == "hello"
        assert checkpoint.chat_template == tokenizer.chat_template is not None
        assert checkpoint.generation_defaults == {}


def test_expanded_sizes_are_told_before_anything_is_read(tmp_path):
    with opened(tiny_llama_gguf(), tmp_path) as checkpoint:
        tensors = [checkpoint.tensor(name) for name in checkpoint.tensor_names]
        num_matrix = sum(np.prod(tensor.shape) for tensor in tensors if len(tensor.shape) > 1)
        num_vector = sum(np.prod(tensor.shape) for tensor in tensors if len(tensor.shape) == 1)
        assert checkpoint.num_weight_bytes("float32") == 4 * (num_matrix + num_vector)
        assert checkpoint.num_weight_bytes("bfloat16") == 2 * num_matrix + 4 * num_vector
