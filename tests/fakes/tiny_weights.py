"""Random weights for a ModelSpec, the same on every machine and with every numpy.

Scaled so that each part matters: attention is neither flat nor one-hot, blocks add more to the residual stream than
the embedding does, and the logits' standard deviation is above 1.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from octavo.config.model_spec import ModelSpec

_GAIN = {"q_proj": 1.6, "k_proj": 1.6, "v_proj": 2.0, "o_proj": 2.0, "down_proj": 2.0}


def tiny_tensors(spec: ModelSpec, seed: int = 1) -> dict[str, np.ndarray]:
    """Every tensor of the model, float32, under Hugging Face's names; `lm_head.weight` only where it is untied."""
    return {name: _draw(spec, name, shape, seed) for name, shape in tensor_shapes(spec).items()}


def tensor_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor."""
    hidden, inner = spec.hidden_size, spec.intermediate_size
    q_size, kv_size = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (spec.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not spec.tie_word_embeddings:
        shapes["lm_head.weight"] = (spec.vocab_size, hidden)
    matrices = {
        "self_attn.q_proj": (q_size, hidden, spec.attention_bias),
        "self_attn.k_proj": (kv_size, hidden, spec.attention_bias),
        "self_attn.v_proj": (kv_size, hidden, spec.attention_bias),
        "self_attn.o_proj": (hidden, q_size, spec.attention_out_bias),
        "mlp.gate_proj": (inner, hidden, spec.mlp_bias),
        "mlp.up_proj": (inner, hidden, spec.mlp_bias),
        "mlp.down_proj": (hidden, inner, spec.mlp_bias),
    }
    norms = {"input_layernorm": hidden, "post_attention_layernorm": hidden}
    if spec.model_type == "gemma3_text":
        norms |= {"pre_feedforward_layernorm": hidden, "post_feedforward_layernorm": hidden}
    if spec.qk_norm:
        norms |= {"self_attn.q_norm": spec.head_dim, "self_attn.k_norm": spec.head_dim}
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}."
        for name, (num_outputs, num_inputs, has_bias) in matrices.items():
            shapes[f"{prefix}{name}.weight"] = (num_outputs, num_inputs)
            if has_bias:
                shapes[f"{prefix}{name}.bias"] = (num_outputs,)
        for name, size in norms.items():
            shapes[f"{prefix}{name}.weight"] = (size,)
    return shapes


def _draw(spec: ModelSpec, name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    # RandomState, because numpy promises that its streams never change.
    noise = np.random.RandomState([seed, zlib.crc32(name.encode())]).standard_normal(shape)
    part = name.split(".")[-2]
    if part.endswith("norm"):
        values = 0.2 * noise + (0.0 if spec.model_type == "gemma3_text" else 1.0)
    elif name.endswith(".bias"):
        values = 0.5 * noise
    elif part == "embed_tokens":
        # Small against the blocks: a tied head would otherwise repeat the last token for ever.
        values = noise * (0.3 if spec.embedding_scale == 1 else 1.2 / spec.embedding_scale)
    else:
        values = noise * _GAIN.get(part, 1.5) / math.sqrt(shape[1])
    return values.astype(np.float32)
