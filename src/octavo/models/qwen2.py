"""Qwen2 and Qwen2.5: Llama's layer with biases on q, k and v.

Source: Qwen2, arXiv 2407.10671; Qwen2.5, arXiv 2412.15115.
"""

from __future__ import annotations

from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder


def build(parts: Assembly) -> Decoder:
    """Load the model. The biases are in the spec."""
    return parts.decoder(parts.pre_norm_layer)
