"""Qwen3: Llama's layer with a norm over each head of q and k in place of Qwen2's biases.

Source: Qwen3, arXiv 2505.09388.
"""

from __future__ import annotations

from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder


def build(parts: Assembly) -> Decoder:
    """Load the model. The norms of the heads are in the spec."""
    return parts.decoder(parts.pre_norm_layer)
