"""Llama: pre-norm layers, rotary positions (with Llama 3's scaling), grouped queries, gated SiLU.

Also what many models that are not Meta's are stored as, SmolLM2 among them.
Source: Llama, arXiv 2302.13971; Llama 3, arXiv 2407.21783.
"""

from __future__ import annotations

from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder


def build(parts: Assembly) -> Decoder:
    """Load the model."""
    return parts.decoder(parts.pre_norm_layer)
