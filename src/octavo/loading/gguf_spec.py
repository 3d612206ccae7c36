"""GGUF metadata -> ModelSpec.

Owns: which keys mean what, for llama (also Mistral), qwen2, qwen3 and gemma3.   Does not own: reading bytes.
Whatever the keys ask for that the engine does not compute is refused, never ignored.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from octavo.base.errors import LoadError
from octavo.config.model_spec import MAX_POSITION, AttentionKind, ModelSpec, RopeSpec
from octavo.loading.dequantize import dequantize_f32
from octavo.loading.fields import Fields
from octavo.loading.gguf import GgufFile, StringArray
from octavo.loading.gguf_names import LAYER_NAMES, ROPE_FACTORS

MODEL_TYPES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3_text"}
"""GGUF architecture -> Hugging Face's model_type."""

GEMMA3_WINDOW_PATTERN = 6
"""Every sixth layer sees everything, the others the window."""
GEMMA3_LOCAL_THETA = 10000.0
GEMMA3_27B_LAYERS = 62
"""The one size whose attention scale is not head_dim^-1/2 (query_pre_attn_scalar = hidden / heads)."""
END_PIECES = ("<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>")
"""Control tokens that end a text wherever they exist; files name only one end token."""
_CONTROL = 3


def read_spec(file: GgufFile) -> ModelSpec:
    """Raises LoadError naming the key at fault."""
    general = Fields(file.metadata, str(file.path))
    architecture = general.text("general.architecture")
    if architecture not in LAYER_NAMES:
        raise general.error(
            "general.architecture", f"= {architecture!r} is not supported (supported: {', '.join(LAYER_NAMES)})"
        )
    if (general.optional_integer("split.count", low=0) or 1) > 1:
        raise general.error("split.count", "says that this is one part of a split model; join the parts first")
    fields = _architecture_fields(file, architecture)
    num_heads = fields.integer("attention.head_count", high=4096)
    hidden_size = fields.integer("embedding_length", high=1 << 20)
    head_dim = _head_dim(fields, hidden_size, num_heads)
    num_layers = fields.integer("block_count", high=4096)
    is_gemma = architecture == "gemma3"
    window = fields.optional_integer("attention.sliding_window", low=0) or None
    kinds = _layer_kinds(fields, num_layers, window, has_global_layers=is_gemma)
    rope = _rope(file, fields, head_dim)
    return ModelSpec(
        model_type=MODEL_TYPES[architecture],
        vocab_size=_vocab_size(file, hidden_size),
        hidden_size=hidden_size,
        intermediate_size=fields.integer("feed_forward_length", high=1 << 22),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=_num_kv_heads(fields, num_heads),
        head_dim=head_dim,
        max_position=fields.integer("context_length", high=MAX_POSITION),
        norm_eps=_round_float32(fields.number("attention.layer_norm_rms_epsilon", low=0.0, high=1.0)),
        rope=rope,
        rope_local=_gemma_local_rope(fields) if is_gemma else None,
        layer_kinds=kinds,
        sliding_window=window if "sliding_window" in kinds else None,
        activation="gelu_tanh" if is_gemma else "silu",
        attention_bias="blk.0.attn_q.bias" in file.tensors,
        attention_out_bias="blk.0.attn_output.bias" in file.tensors,
        mlp_bias="blk.0.ffn_up.bias" in file.tensors,
        qk_norm="blk.0.attn_q_norm.weight" in file.tensors,
        attention_scale=_attention_scale(fields, architecture, head_dim, hidden_size, num_heads, num_layers),
        attention_softcap=fields.optional_number("attn_logit_softcapping", low=0.0) or None,
        logit_softcap=fields.optional_number("final_logit_softcapping", low=0.0) or None,
        embedding_scale=math.sqrt(hidden_size) if is_gemma else 1.0,
        tie_word_embeddings="output.weight" not in file.tensors,
        bos_token_id=general.optional_integer("tokenizer.ggml.bos_token_id", low=0),
        eos_token_ids=_end_tokens(file, general),
        checkpoint_dtype=_checkpoint_dtype(file),
    )


def _architecture_fields(file: GgufFile, architecture: str) -> Fields:
    """The keys "<architecture>.x" as "x"; what asks for other computations than ours is refused here."""
    prefix = f"{architecture}."
    values = {key[len(prefix) :]: value for key, value in file.metadata.items() if key.startswith(prefix)}
    fields = Fields(values, f"{file.path}: {architecture}")
    for key in ("expert_count", "ssm.state_size", "attention.kv_lora_rank", "attention.shared_kv_layers"):
        if fields.optional_integer(key, low=0):
            raise fields.error(key, "asks for a kind of layer that is not supported")
    return fields


def _head_dim(fields: Fields, hidden_size: int, num_heads: int) -> int:
    head_dim = (
        fields.optional_integer("attention.key_length", high=4096)
        or fields.optional_integer("rope.dimension_count", high=4096)
        or hidden_size // num_heads
    )
    if head_dim < 2 or head_dim % 2:
        raise fields.error("attention.key_length", f"gives a head size of {head_dim}, which must be even and positive")
    for key in ("attention.value_length", "rope.dimension_count"):
        if fields.optional_integer(key, high=4096) not in (None, head_dim):
            raise fields.error(key, f"differs from the head size {head_dim}, which is not supported")
    return head_dim


def _num_kv_heads(fields: Fields, num_heads: int) -> int:
    num_kv_heads = fields.optional_integer("attention.head_count_kv", high=4096) or num_heads
    if num_heads % num_kv_heads:
        raise fields.error("attention.head_count_kv", f"= {num_kv_heads} does not divide the {num_heads} query heads")
    return num_kv_heads


def _layer_kinds(
    fields: Fields, num_layers: int, window: int | None, *, has_global_layers: bool
) -> tuple[AttentionKind, ...]:
    full: AttentionKind = "full"
    local: AttentionKind = "sliding_window"
    if window is None:
        return (full,) * num_layers
    if not has_global_layers:
        return (local,) * num_layers
    pattern = fields.optional_integer("attention.sliding_window_pattern", high=4096) or GEMMA3_WINDOW_PATTERN
    return tuple(full if (layer + 1) % pattern == 0 else local for layer in range(num_layers))


def _rope(file: GgufFile, fields: Fields, head_dim: int) -> RopeSpec:
    rope = RopeSpec(theta=fields.optional_number("rope.freq_base", low=1.0) or 10000.0)
    scaling = fields.optional_text("rope.scaling.type") or "none"
    factor = fields.optional_number("rope.scaling.factor", low=0.0) or fields.optional_number("rope.scale_linear")
    if scaling not in ("none", "linear"):
        raise fields.error("rope.scaling.type", f"= {scaling!r} is not supported (supported: none, linear)")
    if factor is not None and factor != 1.0 and (scaling == "linear" or "rope.scaling.type" not in fields):
        rope = dataclasses.replace(rope, scaling="linear", factor=factor)
    info = file.tensors.get(ROPE_FACTORS)
    if info is None:
        return rope
    if info.shape != (head_dim // 2,):
        raise LoadError(f"{file.path}: tensor {ROPE_FACTORS!r} has shape {info.shape}, expected ({head_dim // 2},)")
    factors = dequantize_f32(info.storage, file.file.view(info.offset, info.num_bytes)).tolist()
    if not all(math.isfinite(value) and value > 0 for value in factors):
        raise LoadError(f"{file.path}: tensor {ROPE_FACTORS!r} holds divisors that are not finite and positive")
    return dataclasses.replace(rope, freq_factors=tuple(factors))


def _gemma_local_rope(fields: Fields) -> RopeSpec:
    return RopeSpec(theta=fields.optional_number("rope.freq_base_swa", low=1.0) or GEMMA3_LOCAL_THETA)


def _attention_scale(
    fields: Fields, architecture: str, head_dim: int, hidden_size: int, num_heads: int, num_layers: int
) -> float:
    scale = fields.optional_number("attention.scale", low=0.0)
    if scale:
        return scale
    if architecture == "gemma3" and num_layers == GEMMA3_27B_LAYERS:
        return math.pow(hidden_size // num_heads, -0.5)
    return math.pow(head_dim, -0.5)


def _vocab_size(file: GgufFile, hidden_size: int) -> int:
    table = file.tensors.get("token_embd.weight")
    if table is None:
        raise LoadError(f"{file.path}: tensor 'token_embd.weight' is missing")
    if len(table.shape) != 2 or table.shape[1] != hidden_size:
        raise LoadError(
            f"{file.path}: tensor 'token_embd.weight' has shape {table.shape}, expected (vocabulary, {hidden_size})"
        )
    return table.shape[0]


def _end_tokens(file: GgufFile, general: Fields) -> tuple[int, ...]:
    """The file's own end token, its end of turn, and the well-known end pieces, each once."""
    ends = [general.optional_integer(f"tokenizer.ggml.{name}_token_id", low=0) for name in ("eos", "eot")]
    types = file.metadata.get("tokenizer.ggml.token_type")
    pieces = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(pieces, StringArray) and isinstance(types, np.ndarray) and len(types) == len(pieces):
        controls = [index for index, kind in enumerate(types.tolist()) if kind == _CONTROL]
        texts = pieces.read() if controls else []
        ends += [index for index in controls if texts[index] in END_PIECES]
    return tuple(dict.fromkeys(end for end in ends if end is not None))


def _checkpoint_dtype(file: GgufFile) -> str:
    """The one dtype of all matrices, or "quantized"."""
    kinds = {info.storage.name for info in file.tensors.values() if len(info.shape) > 1}
    return kinds.pop() if len(kinds) == 1 and kinds <= {"float32", "float16", "bfloat16"} else "quantized"


def _round_float32(value: float) -> float:
    """1e-05 for the float32 nearest to it."""
    return float(f"{value:.6g}")
