"""GGUF tensor names -> Hugging Face names, by architecture.

Source: the naming of the GGUF specification and of the converters that write such files.
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"blk\.(\d+)\.([a-z_]+)\.(weight|bias)")

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_COMMON = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_PRE_NORM = _COMMON | {"ffn_norm": "post_attention_layernorm"}
_GEMMA3 = _COMMON | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
LAYER_NAMES = {"llama": _PRE_NORM, "qwen2": _PRE_NORM, "qwen3": _PRE_NORM, "gemma3": _GEMMA3}
"""Architecture -> names inside a block. Its keys are the architectures that are supported."""

ROPE_FACTORS = "rope_freqs.weight"
"""[D/2] divisors of the rotary frequencies (Llama 3 scaling); read into the ModelSpec, not a weight."""


def hf_name(name: str, architecture: str) -> str | None:
    """The Hugging Face name, or None when this architecture has no such tensor."""
    if name in _TOP_LEVEL:
        return _TOP_LEVEL[name]
    match = _BLOCK.fullmatch(name)
    if match is None or match[2] not in LAYER_NAMES[architecture]:
        return None
    return f"model.layers.{int(match[1])}.{LAYER_NAMES[architecture][match[2]]}.{match[3]}"
