"""What the engine needs to know of a model: shapes and constants, no weights.

A ModelSpec is read once from a checkpoint (`config.json` or GGUF metadata) by `loading/` and never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["full", "sliding_window"]
Activation = Literal["silu", "gelu_tanh"]
RopeScaling = Literal["none", "linear", "llama3"]
MAX_POSITION = 1 << 24
"""Rotary angles are products of float32 positions, which are whole numbers up to here only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeSpec:
    """Rotary embedding in the half-split ("NeoX") convention of Hugging Face checkpoints.

    theta: base of the frequencies. scaling "linear" divides positions by `factor`; "llama3" rescales the
    frequencies by wavelength (Llama 3.1 model card). The last three fields matter for "llama3" only.
    """

    theta: float
    scaling: RopeScaling = "none"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position: int = 8192
    freq_factors: tuple[float, ...] | None = None
    """[head_dim / 2] divisors of the frequencies, as GGUF files store the Llama 3 scaling; after `scaling`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Shapes and constants of a decoder-only transformer."""

    model_type: str
    """Hugging Face's `model_type`; names the file in `models/`."""
    vocab_size: int
    """Rows of the embedding and of the head: the width of the logits."""
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_position: int
    """Longest sequence the checkpoint was made for, in tokens; at most MAX_POSITION."""
    norm_eps: float
    rope: RopeSpec
    """Of full-attention layers."""
    rope_local: RopeSpec | None = None
    """Of sliding-window layers; None: the same as `rope`."""
    layer_kinds: tuple[AttentionKind, ...]
    """One entry a layer."""
    sliding_window: int | None = None
    """A token attends to itself and the `sliding_window - 1` before it."""
    activation: Activation = "silu"
    attention_bias: bool = False
    """Biases on q, k and v."""
    attention_out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    """RMSNorm over each head of q and k before the rotation."""
    attention_scale: float
    """Factor of q·k before the softmax."""
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    embedding_scale: float = 1.0
    tie_word_embeddings: bool = False
    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    """The first is the model's own end; the others end a text too (end of turn)."""
    checkpoint_dtype: str = "float32"
    """float32, float16, bfloat16, or "quantized" (GGUF)."""
