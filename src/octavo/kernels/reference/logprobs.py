"""Log-probabilities of raw logits: log-sum-exp, ranks and the best tokens of one row.

Invariants: the sum runs over fixed partitions of the vocabulary, combined in order; every order of tokens is by
(logit, high first; id, low first), so that equal logits never make a choice depend on the machine.
"""

from __future__ import annotations

import numpy as np

from octavo.base.units import ceil_div
from octavo.kernels.ops import FloatArray, IntArray

_PARTITION = 1024


def log_sum_exp(logits: FloatArray) -> np.float32:
    """Logits [V] -> log(sum(exp)), float32. Some logit must be finite."""
    num_partitions = ceil_div(len(logits), _PARTITION)
    padded = np.full(num_partitions * _PARTITION, -np.inf, np.float32)
    padded[: len(logits)] = logits
    parts = padded.reshape(num_partitions, _PARTITION)
    highest = parts.max(axis=1, keepdims=True)  # [partitions, 1]
    overall = highest.max()
    floor = np.where(np.isneginf(highest), np.float32(0), highest)
    sums = np.exp(parts - floor).sum(axis=1) * np.exp(highest[:, 0] - overall)
    # cumsum adds strictly one after the other; sum would pair the terms.
    return np.float32(overall + np.log(np.cumsum(sums)[-1]))


def best_tokens(logits: FloatArray, count: int) -> IntArray:
    """Ids of the `count` highest logits [V], best first."""
    count = min(count, len(logits))
    if count == 0:
        return np.empty(0, np.int32)
    lowest = np.partition(logits, len(logits) - count)[len(logits) - count]
    candidates = np.flatnonzero(logits >= lowest)
    order = np.argsort(-logits[candidates], kind="stable")
    return candidates[order[:count]].astype(np.int32)


def describe_tokens(logits: FloatArray, token_ids: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """(ids, logprobs, ranks) of some tokens of a row [V]; a rank is 1 + the number of tokens strictly more likely."""
    logprobs = logits[token_ids] - log_sum_exp(logits)
    ranks = np.array([1 + np.count_nonzero(logits > logits[token_id]) for token_id in token_ids], np.int32)
    return np.asarray(token_ids, np.int32), logprobs, ranks
