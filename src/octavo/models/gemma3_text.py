"""Gemma 3, its text part: a norm before and after each block, windows in five layers of six, two rotary bases.

Every norm is stored as w and used as 1 + w; the embedding is scaled by sqrt(hidden size); heads of q and k are
normalized; the gate is GELU. Source: Gemma 3, arXiv 2503.19786.
"""

from __future__ import annotations

from octavo.layers.decoder_layer import SandwichNormLayer
from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder

_NORM_ADD = 1.0


def build(parts: Assembly) -> Decoder:
    """Load the model. Windows, bases, scales and soft-caps are in the spec."""

    def load_layer(layer: int) -> SandwichNormLayer:
        name = f"model.layers.{layer}"
        return SandwichNormLayer(
            attention_norm=parts.norm(f"{name}.input_layernorm", norm_add=_NORM_ADD),
            attention=parts.attention(layer, norm_add=_NORM_ADD),
            attention_post_norm=parts.norm(f"{name}.post_attention_layernorm", norm_add=_NORM_ADD),
            mlp_norm=parts.norm(f"{name}.pre_feedforward_layernorm", norm_add=_NORM_ADD),
            mlp=parts.mlp(layer),
            mlp_post_norm=parts.norm(f"{name}.post_feedforward_layernorm", norm_add=_NORM_ADD),
        )

    return parts.decoder(load_layer, norm_add=_NORM_ADD)
