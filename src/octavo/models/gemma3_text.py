"""Gemma 3, its text part: a norm before and after each block, windows in five layers of six, two rotary bases.

Every norm is stored as w and used as 1 + w; the embedding is scaled by sqrt(hidden size); heads of q and k are
normalized; the gate is GELU. Source: Gemma 3, arXiv 2503.19786.
"""

from __future__ import annotations

from octavo.models.assembly import Assembly
from octavo.models.decoder import Decoder

_NORM_ADD = 1.0


def build(parts: Assembly) -> Decoder:
    """Load the model. Windows, bases, scales and soft-caps are in the spec."""
    return parts.decoder(lambda layer: parts.sandwich_layer(layer, norm_add=_NORM_ADD), norm_add=_NORM_ADD)
