"""What a forward step must move and multiply at the least: the yardstick for its time.

Owns: counts that follow from shapes.   Does not own: rates of a machine, measured times.
Counted: weights once per step, embedding rows, keys and values read and written; two FLOPs per multiply-add of every
matrix product, attention included. Not counted: activations (they stay in caches), norms, softmax, sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.config.model_spec import ModelSpec

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepCost:
    """Totals of one step."""

    num_bytes: int
    num_flops: int


class CostModel:
    """Costs of steps of one model. weight_bits: stored bits per weight; kv_itemsize: bytes per K or V element."""

    def __init__(self, spec: ModelSpec, *, weight_bits: float, kv_itemsize: int) -> None:
        self._spec = spec
        self._weight_bytes = weight_bits / 8
        self._kv_bytes = 2 * spec.num_kv_heads * spec.head_dim * kv_itemsize  # of one token and layer
        self._num_layer_weights = spec.num_layers * num_layer_weights(spec)
        self._num_head_weights = spec.vocab_size * spec.hidden_size
        num_windowed = sum(kind == "sliding_window" for kind in spec.layer_kinds)
        self._layers = ((None, spec.num_layers - num_windowed), (spec.sliding_window, num_windowed))

    def step(self, num_tokens: npt.ArrayLike, seq_lens: npt.ArrayLike, num_logit_rows: int) -> StepCost:
        """num_tokens [S]: tokens each sequence computes; seq_lens [S]: its length after them. Cost: O(S), no loops."""
        spec = self._spec
        new = np.asarray(num_tokens, np.int64)
        lengths = np.asarray(seq_lens, np.int64)
        total = int(new.sum())
        weights = self._num_layer_weights + (self._num_head_weights if num_logit_rows else 0)
        num_bytes = (weights + total * spec.hidden_size) * self._weight_bytes
        num_flops = 2 * (total * self._num_layer_weights + num_logit_rows * self._num_head_weights)
        for window, num_layers in self._layers:
            if num_layers == 0:
                continue
            num_read = int(_keys_read(new, lengths, window).sum())
            num_pairs = int(_query_key_pairs(new, lengths, window).sum())
            num_bytes += num_layers * self._kv_bytes * (num_read + total)
            num_flops += num_layers * 4 * spec.num_heads * spec.head_dim * num_pairs
        return StepCost(num_bytes=round(num_bytes), num_flops=num_flops)


def num_layer_weights(spec: ModelSpec) -> int:
    """Matrix elements of one layer."""
    q_size, kv_size = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    return spec.hidden_size * (2 * q_size + 2 * kv_size + 3 * spec.intermediate_size)


def _keys_read(new: Counts, lengths: Counts, window: int | None) -> Counts:
    """Distinct keys that a sequence's queries of this step see."""
    return lengths if window is None else np.minimum(lengths, new + window - 1)


def _query_key_pairs(new: Counts, lengths: Counts, window: int | None) -> Counts:
    """Sum over a sequence's queries of the keys each sees: position + 1, at most the window."""
    first, last = lengths - new + 1, lengths  # keys seen by the first and by the last query, without a window
    if window is None:
        return np.asarray((first + last) * new // 2)
    num_growing = np.clip(window - first + 1, 0, new)  # queries that still see all before them
    return np.asarray((2 * first + num_growing - 1) * num_growing // 2 + (new - num_growing) * window)
