"""The op table of the reference back end: each entry names the file that does the work.

Owns: the number format of the back end.   Does not own: any arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import (
    AttentionParams,
    DecoderLayer,
    FloatArray,
    ForwardBatch,
    IntArray,
    LinearSegment,
    RopeTable,
    SampleBatch,
    SampleResult,
    WeightTensor,
)
from octavo.kernels.reference import activation, attention, blocks, linear, logprobs, norm, rotary, sampling
from octavo.kernels.reference.cache import ReferenceKvCache
from octavo.kernels.reference.linear import PackedMatrix
from octavo.kernels.reference.precision import Precision
from octavo.proto.kv import KvCacheSpec


class ReferenceOps:
    """OpTable in numpy. All tensors are float32 arrays; bfloat16 is emulated by rounding."""

    name = "reference"

    def __init__(
        self, dtype: Literal["float32", "bfloat16"], *, accumulate: Literal["float32", "float64"] = "float32"
    ) -> None:
        self.dtype = dtype
        self._precision = Precision(dtype, accumulate)

    # ---- memory -----------------------------------------------------------------------------------------------

    def pack_linear(self, segments: Sequence[LinearSegment]) -> PackedMatrix:
        return linear.pack_segments(segments, self._precision)

    def pack_gated(self, gate: LinearSegment, up: LinearSegment) -> PackedMatrix:
        return self.pack_linear([gate, up])

    def pack_embedding(self, weight: WeightTensor) -> PackedMatrix:
        return linear.pack_table(weight, self._precision)

    def pack_vector(self, weight: WeightTensor, *, add: float = 0.0) -> FloatArray:
        values = weight.read_f32() + np.float32(add)
        weight.drop()
        return values

    def allocate_kv(self, spec: KvCacheSpec) -> ReferenceKvCache:
        return ReferenceKvCache(spec)

    # ---- forward ----------------------------------------------------------------------------------------------

    def embedding(self, tokens: IntArray, table: PackedMatrix, *, scale: float = 1.0) -> FloatArray:
        return linear.look_up(tokens, table, scale)

    def rms_norm(
        self, x: FloatArray, weight: FloatArray, eps: float, *, addend: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        residual = x if addend is None else x + addend
        return self._precision.as_input(norm.normalize(residual, weight, eps, self._precision)), residual

    def linear(self, x: FloatArray, weights: PackedMatrix) -> FloatArray:
        return linear.multiply(x, weights, self._precision)

    def norm_only(self, x: FloatArray, weight: FloatArray, eps: float) -> FloatArray:
        return norm.normalize(x, weight, eps, self._precision).astype(np.float32, copy=False)

    def rotary_write(
        self,
        qkv: FloatArray,
        batch: ForwardBatch,
        cache: ReferenceKvCache,
        layer: int,
        rope: RopeTable,
        params: AttentionParams,
        *,
        q_norm: FloatArray | None = None,
        k_norm: FloatArray | None = None,
        eps: float = 0.0,
    ) -> FloatArray:
        num_q, num_kv = params.num_heads, params.num_kv_heads
        heads = self._precision.widen(qkv).reshape(len(qkv), num_q + 2 * num_kv, params.head_dim)
        q, k, v = heads[:, :num_q], heads[:, num_q : num_q + num_kv], heads[:, num_q + num_kv :]
        if q_norm is not None:
            q = norm.normalize(q, q_norm, eps, self._precision)
        if k_norm is not None:
            k = norm.normalize(k, k_norm, eps, self._precision)
        k = rotary.rotate(k, batch.positions, rope, self._precision)
        cache.write(layer, batch.groups[cache.group_of(layer)].slots, k, v)
        return rotary.rotate(q, batch.positions, rope, self._precision).astype(np.float32, copy=False)

    def paged_attention(
        self, q: FloatArray, batch: ForwardBatch, cache: ReferenceKvCache, layer: int, params: AttentionParams
    ) -> FloatArray:
        return self._precision.as_input(attention.attend(q, batch, cache, layer, params, self._precision))

    def gated_activation(self, gate_up: FloatArray, kind: Literal["silu", "gelu_tanh"]) -> FloatArray:
        return self._precision.as_input(activation.gate(gate_up, kind, self._precision))

    def decode(
        self, residual: FloatArray, layers: tuple[DecoderLayer, ...], batch: ForwardBatch, cache: ReferenceKvCache
    ) -> tuple[FloatArray, FloatArray]:
        residual, addend, attended = blocks.decode(self, residual, layers, batch, cache)
        return (residual + addend)[batch.logit_rows], attended

    def logits(self, x: FloatArray, rows: IntArray, head: PackedMatrix, *, softcap: float | None = None) -> FloatArray:
        out = linear.multiply(x[rows], head, self._precision)
        return out if softcap is None else np.tanh(out / np.float32(softcap)) * np.float32(softcap)

    def finite_rows(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(np.isfinite(x).all(axis=1))

    # ---- after the forward ------------------------------------------------------------------------------------

    def sample(self, logits: FloatArray, batch: SampleBatch) -> SampleResult:
        token_ids = np.zeros(len(logits), np.int32)
        exhausted = np.zeros(len(logits), np.bool_)
        finite: npt.NDArray[np.bool_] = np.asarray((logits < np.inf).all(axis=1))  # NaN < inf is False
        found: list[tuple[IntArray, FloatArray, IntArray] | None] = [None] * len(logits)
        for row in map(int, np.flatnonzero(finite)):
            chosen = sampling.choose_token(logits[row], batch, row)
            if chosen is None:
                exhausted[row] = True
                continue
            token_ids[row] = chosen
            wanted = _wanted_tokens(logits[row], batch, row)
            if wanted is not None:
                found[row] = logprobs.describe_tokens(logits[row], np.append(np.int32(chosen), wanted))
        return SampleResult(token_ids=token_ids, finite=finite, exhausted=exhausted, logprobs=tuple(found))

    def token_logprobs(
        self, logits: FloatArray, token_ids: IntArray, num_top: int
    ) -> list[tuple[IntArray, FloatArray, IntArray]]:
        return [
            logprobs.describe_tokens(row, np.append(token_id, logprobs.best_tokens(row, num_top)).astype(np.int32))
            for row, token_id in zip(logits, token_ids, strict=True)
        ]

    def copy_blocks(self, cache: ReferenceKvCache, pairs: Sequence[tuple[int, int]]) -> None:
        cache.copy_blocks(pairs)


def _wanted_tokens(logits: FloatArray, batch: SampleBatch, row: int) -> IntArray | None:
    """Ids whose logprobs the row asked for, besides the sampled one; None: no logprobs at all."""
    listed = batch.logprob_token_ids[row]
    if listed is not None:
        return listed
    count = int(batch.num_logprobs[row])
    return logprobs.best_tokens(logits, count) if count >= 0 else None
