"""What the op `sample` is told, and what it answers.

Owns: parameters of rows that sample, and the order in which they are applied.   Does not own: choosing (back ends).
Letters: R rows that sample, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.kernels.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleBatch:
    """Parameters of the R rows that sample; arrays [R] unless said otherwise.

    Order of processing, fixed and documented: masks (allowed, allowed_bits), then bias (logit_bias, bad words, ends
    before min_tokens), repetition penalty, frequency and presence penalties, temperature, then top-k, top-p, min-p on
    the tempered distribution, then arg max of (logit + Gumbel noise). A masked token is at -inf and stays there.
    Greedy rows (temperature 0) skip what follows the penalties and add no noise.
    Logprobs are of the raw logits (log-softmax before any processing).
    """

    temperature: FloatArray
    """0: greedy"""
    top_k: IntArray
    """0: all"""
    top_p: FloatArray
    min_p: FloatArray
    repetition_penalty: FloatArray
    frequency_penalty: FloatArray
    presence_penalty: FloatArray
    seeds: npt.NDArray[np.uint64]
    positions: npt.NDArray[np.int64]
    """Absolute position of the token being sampled: part of the noise key."""
    history: tuple[tuple[IntArray, IntArray] | None, ...]
    """Per row (prompt ids, output ids) where a penalty is on, else None."""
    bias: tuple[tuple[IntArray, FloatArray] | None, ...]
    """Per row (ids, values added): logit_bias, and -inf for banned tokens."""
    allowed: tuple[IntArray | None, ...]
    """Per row: only these ids may be sampled; None: all."""
    allowed_bits: tuple[IntArray | None, ...]
    """Per row [ceil(V / 32)]: token t may be sampled where bit t % 32 of word t // 32 is set; None: all. Bits from V on
    mean nothing."""
    num_logprobs: IntArray
    """-1: none wanted; k >= 0: the sampled token and the top k."""
    logprob_token_ids: tuple[IntArray | None, ...]
    """Per row: logprobs of exactly these ids (and the sampled one) in place of the top k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """Outcome of `sample`, parallel to the batch."""

    token_ids: IntArray
    """[R]"""
    finite: npt.NDArray[np.bool_]
    """[R] False: the row's logits held a NaN or +inf; its token means nothing."""
    exhausted: npt.NDArray[np.bool_]
    """[R] True: masks and biases left no token to choose; its token means nothing. Never where not finite."""
    logprobs: tuple[tuple[IntArray, FloatArray, IntArray] | None, ...]
    """Per row (ids, logprobs, ranks): the sampled token first, then the top k or the ids asked for."""
