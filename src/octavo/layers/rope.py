"""Rotary tables: the angle of every position and frequency, with the checkpoint's context extension.

Owns: frequencies and their scaling.   Does not own: the rotation (kernels).
Angles are products of float32 numbers, as the models were trained with; their cosines are exact to float32.
Source: RoFormer, arXiv 2104.09864; linear scaling, arXiv 2306.15595; llama3 scaling, model card of Llama 3.1.
"""

from __future__ import annotations

import math

import numpy as np

from octavo.config.model_spec import RopeSpec
from octavo.kernels.ops import FloatArray, RopeTable

_CHUNK = 4096
"""Positions whose angles are held in float64 at a time."""


def rope_frequencies(spec: RopeSpec, head_dim: int) -> FloatArray:
    """Radians per position of each pair [D / 2] float32, scaling included."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    frequencies: FloatArray = np.asarray(np.float32(1) / np.float32(spec.theta) ** exponents, np.float32)
    if spec.scaling == "linear":
        frequencies = frequencies / np.float32(spec.factor)
    elif spec.scaling == "llama3":
        frequencies = _stretch_long_waves(frequencies, spec)
    if spec.freq_factors is not None:
        frequencies = np.divide(frequencies, np.asarray(spec.freq_factors, np.float32))
    return frequencies


def rope_table(spec: RopeSpec, head_dim: int, num_positions: int) -> RopeTable:
    """Tables of positions 0 .. num_positions. Cost: num_positions * head_dim * 4 bytes, and one chunk in float64."""
    frequencies = rope_frequencies(spec, head_dim)
    table = RopeTable(
        cos=np.empty((num_positions, head_dim // 2), np.float32),
        sin=np.empty((num_positions, head_dim // 2), np.float32),
    )
    for start in range(0, num_positions, _CHUNK):
        positions = np.arange(start, min(start + _CHUNK, num_positions)).astype(np.float32)
        angles = np.outer(positions, frequencies).astype(np.float64)  # [chunk, D / 2]
        table.cos[start : start + _CHUNK] = np.cos(angles)
        table.sin[start : start + _CHUNK] = np.sin(angles)
    return table


def _stretch_long_waves(frequencies: FloatArray, spec: RopeSpec) -> FloatArray:
    """Divide by `factor` where the wave is long against the original context, not at all where it is short.

    Between the two borders the frequency goes linearly, in turns per original context, from one to the other.
    """
    turns = spec.original_max_position * frequencies / np.float32(2 * math.pi)
    kept_share = (turns - spec.low_freq_factor) / (spec.high_freq_factor - spec.low_freq_factor)
    kept_share = np.clip(kept_share, 0, 1)
    return np.asarray((1 - kept_share) * frequencies / spec.factor + kept_share * frequencies, np.float32)
