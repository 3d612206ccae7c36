"""Mistral: Llama's layer; the first releases attend through a sliding window in every layer, later ones to all.

Source: Mistral 7B, arXiv 2310.06825.
"""

from __future__ import annotations

from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder


def build(parts: Assembly) -> Decoder:
    """Load the model. The spec says which layers have the window."""
    return parts.decoder(parts.pre_norm_layer)
