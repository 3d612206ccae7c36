"""The attention constants of one layer, read from the model's spec."""

from __future__ import annotations

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import AttentionParams


def attention_params(spec: ModelSpec, layer: int) -> AttentionParams:
    """Constants of model layer `layer`; only sliding-window layers have a window."""
    return AttentionParams(
        num_heads=spec.num_heads,
        num_kv_heads=spec.num_kv_heads,
        head_dim=spec.head_dim,
        scale=spec.attention_scale,
        window=spec.sliding_window if spec.layer_kinds[layer] == "sliding_window" else None,
        softcap=spec.attention_softcap,
    )
