import pytest

from octavo.loading.gguf_names import hf_name


@pytest.mark.parametrize(
    ("architecture", "name", "expected"),
    [
        ("llama", "token_embd.weight", "model.embed_tokens.weight"),
        ("llama", "output.weight", "lm_head.weight"),
        ("qwen2", "blk.12.attn_q.bias", "model.layers.12.self_attn.q_proj.bias"),
        ("qwen3", "blk.0.attn_k_norm.weight", "model.layers.0.self_attn.k_norm.weight"),
        ("llama", "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
        ("gemma3", "blk.0.ffn_norm.weight", "model.layers.0.pre_feedforward_layernorm.weight"),
        ("gemma3", "blk.0.post_ffw_norm.weight", "model.layers.0.post_feedforward_layernorm.weight"),
        ("llama", "blk.0.post_ffw_norm.weight", None),
        ("llama", "blk.0.ffn_gate_inp.weight", None),
        ("llama", "blk.x.attn_q.weight", None),
        ("llama", "", None),
    ],
)
def test_names_are_translated_or_unknown(architecture, name, expected):
    assert hf_name(name, architecture) == expected
