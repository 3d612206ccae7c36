"""Choice of the next token of one row: masks, penalties, temperature, top-k, top-p, min-p, Gumbel-max.

Owns: the order of processing that SampleBatch documents.   Does not own: logprobs, the noise generator.
Invariant: a row is processed by itself; ties go to the lowest id.
Source: the Gumbel-max trick, arXiv 1411.0030; repetition penalty, CTRL, arXiv 1909.05858; nucleus sampling,
arXiv 1904.09751; min-p, arXiv 2407.01082.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from octavo.kernels.noise import gumbel_noise
from octavo.kernels.ops import FloatArray, IntArray, SampleBatch
from octavo.kernels.reference.logprobs import best_tokens


def choose_token(logits: FloatArray, batch: SampleBatch, row: int) -> int | None:
    """The token of row `row`, given its raw logits [V] float32. None: masks and biases left no token to choose."""
    processed = _penalized(_masked(logits, batch, row), batch, row)
    best = int(np.argmax(processed))
    if np.isneginf(processed[best]):
        return None
    temperature = batch.temperature[row]
    if temperature == 0:
        return best
    tempered = processed / temperature
    kept = _kept_tokens(tempered, int(batch.top_k[row]), float(batch.top_p[row]), float(batch.min_p[row]))
    noise = gumbel_noise(int(batch.seeds[row]), int(batch.positions[row]), kept)
    return int(kept[np.argmax(tempered[kept] + noise)])


def _masked(logits: FloatArray, batch: SampleBatch, row: int) -> FloatArray:
    """A copy with the tokens outside `allowed` and `allowed_bits` at -inf and the biases added."""
    allowed, bits, bias = batch.allowed[row], batch.allowed_bits[row], batch.bias[row]
    if allowed is None:
        out = logits.copy()
    else:
        out = np.full_like(logits, -np.inf)
        out[allowed] = logits[allowed]
    if bits is not None:
        out[~unpack_bits(bits, len(out))] = -np.inf
    if bias is not None:
        token_ids, values = bias
        np.add.at(out, token_ids, values)
    return out


def unpack_bits(bits: IntArray, count: int) -> npt.NDArray[np.bool_]:
    """Words [ceil(count / 32)] as truth values [count], the lowest bit of a word first."""
    token_ids = np.arange(count)
    return np.asarray((bits[token_ids // 32] >> (token_ids % 32)) & 1 == 1)


def _penalized(logits: FloatArray, batch: SampleBatch, row: int) -> FloatArray:
    """Repetition penalty over prompt and output, then frequency and presence penalties over the output."""
    history = batch.history[row]
    if history is None:
        return logits
    prompt_ids, output_ids = history
    repetition = batch.repetition_penalty[row]
    if repetition != 1:
        seen = np.union1d(prompt_ids, output_ids).astype(np.int64)
        values = logits[seen]
        logits[seen] = np.where(values > 0, values / repetition, values * repetition)
    repeated, counts = np.unique(output_ids, return_counts=True)
    logits[repeated] -= batch.frequency_penalty[row] * counts.astype(np.float32) + batch.presence_penalty[row]
    return logits


def _kept_tokens(tempered: FloatArray, top_k: int, top_p: float, min_p: float) -> IntArray:
    """Ids that may still be drawn, ascending. The best token always stays.

    top_p keeps the smallest set of the best tokens whose probability, among those top_k left, reaches it; min_p
    drops tokens less likely than `min_p` times the best. Neither -inf nor a vanished probability is ever kept.
    """
    if top_k == 0 and top_p >= 1 and min_p <= 0:
        return np.flatnonzero(tempered > -np.inf).astype(np.int32)
    ordered = best_tokens(tempered, top_k if top_k > 0 else len(tempered))
    values = tempered[ordered]
    weights = np.exp((values - values[0]).astype(np.float64))  # relative to the best, descending
    count = int(np.count_nonzero(weights > 0))
    if top_p < 1:
        cumulative = np.cumsum(weights)
        count = min(count, int(np.searchsorted(cumulative, top_p * cumulative[-1])) + 1)
    if min_p > 0:
        count = min(count, int(np.count_nonzero(weights >= min_p)))
    return np.sort(ordered[:count])
