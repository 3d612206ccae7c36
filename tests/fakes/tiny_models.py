"""Tiny models of every architecture and rotary variant: specs written by hand, Hugging Face configs made from them.

Small numbers on purpose: prompts of the tests are longer than the window, than a block and than the original context
of the scaled rotary embedding.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from octavo.config.model_spec import ModelSpec, RopeSpec

WINDOW = 20

LLAMA = ModelSpec(
    model_type="llama",
    vocab_size=320,
    hidden_size=64,
    intermediate_size=96,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_position=512,
    norm_eps=1e-5,
    rope=RopeSpec(theta=10000.0),
    layer_kinds=("full", "full"),
    attention_scale=16**-0.5,
    tie_word_embeddings=True,
    bos_token_id=1,
    eos_token_ids=(2,),
)
"""The two-layer model of most tests."""

_LLAMA_3_ROPE = RopeSpec(
    theta=10000.0,
    scaling="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position=32,
)
_GEMMA_KINDS = ("sliding_window", "sliding_window", "full", "sliding_window", "sliding_window", "full")
_GEMMA = replace(
    LLAMA,
    model_type="gemma3_text",
    num_layers=6,
    head_dim=24,
    norm_eps=1e-6,
    rope=RopeSpec(theta=1000000.0),
    rope_local=RopeSpec(theta=10000.0),
    layer_kinds=_GEMMA_KINDS,
    sliding_window=WINDOW,
    activation="gelu_tanh",
    qk_norm=True,
    attention_scale=40**-0.5,
    embedding_scale=math.sqrt(64),
)
_QWEN2 = replace(LLAMA, model_type="qwen2", attention_bias=True, norm_eps=1e-6, rope=RopeSpec(theta=1000000.0))

TINY_SPECS: dict[str, ModelSpec] = {
    "llama": LLAMA,
    "llama_untied": replace(LLAMA, tie_word_embeddings=False),
    "llama_rope_llama3": replace(LLAMA, rope=_LLAMA_3_ROPE),
    "llama_rope_linear": replace(LLAMA, rope=RopeSpec(theta=10000.0, scaling="linear", factor=4.0)),
    "llama_biases": replace(LLAMA, attention_bias=True, attention_out_bias=True, mlp_bias=True),
    "mistral": replace(LLAMA, model_type="mistral", tie_word_embeddings=False),
    "mistral_window": replace(
        LLAMA,
        model_type="mistral",
        head_dim=24,
        attention_scale=24**-0.5,
        layer_kinds=("sliding_window", "sliding_window"),
        sliding_window=WINDOW,
    ),
    "qwen2": _QWEN2,
    "qwen2_untied": replace(_QWEN2, tie_word_embeddings=False),
    "qwen3": replace(
        LLAMA, model_type="qwen3", head_dim=24, attention_scale=24**-0.5, qk_norm=True, rope=RopeSpec(theta=1000000.0)
    ),
    "gemma3_text": _GEMMA,
    "gemma3_text_linear": replace(_GEMMA, rope=RopeSpec(theta=1000000.0, scaling="linear", factor=8.0)),
}


def hf_config(spec: ModelSpec) -> dict[str, Any]:
    """The model's config.json, with the keys that published checkpoints have."""
    config: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[spec.model_type]],
        "model_type": spec.model_type,
        "vocab_size": spec.vocab_size,
        "hidden_size": spec.hidden_size,
        "intermediate_size": spec.intermediate_size,
        "num_hidden_layers": spec.num_layers,
        "num_attention_heads": spec.num_heads,
        "num_key_value_heads": spec.num_kv_heads,
        "head_dim": spec.head_dim,
        "max_position_embeddings": spec.max_position,
        "rms_norm_eps": spec.norm_eps,
        "rope_theta": spec.rope.theta,
        "rope_scaling": _rope_scaling(spec.rope),
        "tie_word_embeddings": spec.tie_word_embeddings,
        "bos_token_id": spec.bos_token_id,
        "eos_token_id": list(spec.eos_token_ids),
        "torch_dtype": "float32",
    }
    if spec.model_type == "llama":
        config |= {"hidden_act": "silu", "attention_bias": spec.attention_bias, "mlp_bias": spec.mlp_bias}
    elif spec.model_type == "gemma3_text":
        config |= {
            "hidden_activation": "gelu_pytorch_tanh",
            "layer_types": [
                "sliding_attention" if kind == "sliding_window" else "full_attention" for kind in spec.layer_kinds
            ],
            "sliding_window": spec.sliding_window,
            "rope_local_base_freq": spec.rope_local.theta if spec.rope_local else spec.rope.theta,
            "query_pre_attn_scalar": round(spec.attention_scale**-2),
            "attn_logit_softcapping": spec.attention_softcap,
            "final_logit_softcapping": spec.logit_softcap,
        }
    else:
        config |= {"hidden_act": "silu", "sliding_window": spec.sliding_window}
    if spec.model_type in ("qwen2", "qwen3"):
        config |= {"use_sliding_window": False}
    return config


_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
}


def _rope_scaling(rope: RopeSpec) -> dict[str, Any] | None:
    if rope.scaling == "none":
        return None
    scaling: dict[str, Any] = {"rope_type": rope.scaling, "factor": rope.factor}
    if rope.scaling == "llama3":
        scaling |= {
            "low_freq_factor": rope.low_freq_factor,
            "high_freq_factor": rope.high_freq_factor,
            "original_max_position_embeddings": rope.original_max_position,
        }
    return scaling
