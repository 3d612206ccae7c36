"""SampleBatch to and from the native sampler: lists that few rows have travel as (row, arrays)."""

from __future__ import annotations

from octavo import _native
from octavo.kernels.ops import FloatArray, IntArray, SampleBatch, SampleResult


def sample(ops: _native.Backend, logits: FloatArray, batch: SampleBatch) -> SampleResult:
    """Sample the rows of logits [R, V]. See SampleBatch for the order of processing."""
    scalars = _native.RowScalars(
        batch.temperature,
        batch.top_k,
        batch.top_p,
        batch.min_p,
        batch.repetition_penalty,
        batch.frequency_penalty,
        batch.presence_penalty,
        batch.seeds,
        batch.positions,
        batch.num_logprobs,
    )
    lists = _native.RowLists()
    lists.history = [(row, *pair) for row, pair in enumerate(batch.history) if pair is not None]
    lists.bias = [(row, *pair) for row, pair in enumerate(batch.bias) if pair is not None]
    lists.allowed = [(row, ids) for row, ids in enumerate(batch.allowed) if ids is not None]
    lists.allowed_bits = [(row, bits) for row, bits in enumerate(batch.allowed_bits) if bits is not None]
    lists.logprob_ids = [(row, ids) for row, ids in enumerate(batch.logprob_token_ids) if ids is not None]
    token_ids, outcomes, logprobs = _native.sample(ops, logits, scalars, lists)
    return SampleResult(
        token_ids=token_ids,
        finite=outcomes != _native.NOT_FINITE,
        exhausted=outcomes == _native.EXHAUSTED,
        logprobs=logprobs,
    )


def token_logprobs(
    ops: _native.Backend, logits: FloatArray, token_ids: IntArray, num_top: int
) -> list[tuple[IntArray, FloatArray, IntArray]]:
    """Per row (ids, logprobs, ranks): `token_ids[r]` first, then the `num_top` best."""
    return _native.token_logprobs(ops, logits, token_ids, num_top)
