"""The op table of the native CPU back end. Tensors are `_native.Tensor`; logits are numpy arrays [R, V].

Owns: which native handle belongs to which batch, rope table and layer constants.   Does not own: arithmetic, threads.
Invariant: a native tensor's memory returns to the arena when its last owner lets go, so results never alias.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from octavo import _native
from octavo.kernels.cpu import packing, sampling
from octavo.kernels.cpu.cache import CpuKvCache
from octavo.kernels.ops import (
    AttentionBlock,
    AttentionParams,
    DecoderLayer,
    FeedForwardBlock,
    FloatArray,
    ForwardBatch,
    IntArray,
    LinearSegment,
    RopeTable,
    SampleBatch,
    SampleResult,
    WeightTensor,
)
from octavo.proto.kv import KvCacheSpec

_BFLOAT16_EXPONENT = np.uint16(0x7F80)
"""Bits that are all set in infinities and NaN, and in nothing else."""


class CpuOps:
    """OpTable over `octavo._native`. Calls may come from any thread; they take turns in the pool."""

    name = "cpu"

    def __init__(
        self, dtype: Literal["float32", "bfloat16"], *, num_threads: int | None = None, isa: str = "auto"
    ) -> None:
        """num_threads: None for one a core of the process's affinity. isa: "auto" for the best the processor runs.

        Raises ValueError for a level that this processor cannot run.
        """
        self.dtype = dtype
        self._ops = _native.Backend(dtype, isa, num_threads or len(os.sched_getaffinity(0)))
        # The batch of the forward that runs, with its native form; batches follow each other, so one is enough.
        self._batch: tuple[ForwardBatch, CpuKvCache, _native.StepBatch] | None = None
        # By identity; the objects are kept so that an identity is not used twice.
        self._ropes: dict[int, tuple[RopeTable, _native.RopeTable]] = {}
        self._options: dict[int, tuple[AttentionParams, _native.AttentionOptions]] = {}
        self._layers: dict[int, tuple[tuple[DecoderLayer, ...], _native.DecoderLayers]] = {}

    @property
    def isa(self) -> str:
        """The level in use."""
        return self._ops.isa

    @property
    def num_threads(self) -> int:
        """Threads that compute, the calling one included."""
        return self._ops.num_threads

    @property
    def arena_bytes(self) -> int:
        """Memory held for results, in use or waiting to be used again."""
        return self._ops.arena_bytes

    # ---- memory -----------------------------------------------------------------------------------------------

    def pack_linear(self, segments: Sequence[LinearSegment]) -> _native.PackedMatrix:
        return packing.pack_segments(self._ops, segments, self.dtype)

    def pack_gated(self, gate: LinearSegment, up: LinearSegment) -> _native.PackedMatrix:
        return packing.pack_gated(self._ops, gate, up, self.dtype)

    def pack_embedding(self, weight: WeightTensor) -> _native.PackedMatrix:
        return packing.pack_table(self._ops, weight, self.dtype)

    def pack_vector(self, weight: WeightTensor, *, add: float = 0.0) -> _native.PackedVector:
        values = weight.read_f32() + np.float32(add)
        weight.drop()
        return _native.PackedVector(values)

    def allocate_kv(self, spec: KvCacheSpec) -> CpuKvCache:
        return CpuKvCache(spec, self._ops)

    # ---- forward ----------------------------------------------------------------------------------------------

    def embedding(self, tokens: IntArray, table: _native.PackedMatrix, *, scale: float = 1.0) -> _native.Tensor:
        return self._ops.embedding(tokens, table, scale)

    def rms_norm(
        self, x: _native.Tensor, weight: _native.PackedVector, eps: float, *, addend: _native.Tensor | None = None
    ) -> tuple[_native.Tensor, _native.Tensor]:
        return self._ops.rms_norm(x, addend, weight, eps)

    def linear(self, x: _native.Tensor, weights: _native.PackedMatrix) -> _native.Tensor:
        return self._ops.linear(x, weights)

    def norm_only(self, x: _native.Tensor, weight: _native.PackedVector, eps: float) -> _native.Tensor:
        return self._ops.norm_only(x, weight, eps)

    def rotary_write(
        self,
        qkv: _native.Tensor,
        batch: ForwardBatch,
        cache: CpuKvCache,
        layer: int,
        rope: RopeTable,
        params: AttentionParams,
        *,
        q_norm: _native.PackedVector | None = None,
        k_norm: _native.PackedVector | None = None,
        eps: float = 0.0,
    ) -> _native.Tensor:
        return self._ops.rotary_write(
            qkv,
            self._native_batch(batch, cache),
            cache.native,
            layer,
            self._native_rope(rope),
            self._native_options(params),
            q_norm,
            k_norm,
            eps,
        )

    def paged_attention(
        self, q: _native.Tensor, batch: ForwardBatch, cache: CpuKvCache, layer: int, params: AttentionParams
    ) -> _native.Tensor:
        return self._ops.paged_attention(
            q, self._native_batch(batch, cache), cache.native, layer, self._native_options(params)
        )

    def gated_activation(self, gate_up: _native.Tensor, kind: Literal["silu", "gelu_tanh"]) -> _native.Tensor:
        return self._ops.gated_activation(gate_up, kind)

    def decode(
        self, residual: _native.Tensor, layers: tuple[DecoderLayer, ...], batch: ForwardBatch, cache: CpuKvCache
    ) -> tuple[_native.Tensor, _native.Tensor]:
        return self._ops.decode(
            residual, self._native_batch(batch, cache), cache.native, self._native_layers(layers), batch.logit_rows
        )

    def logits(
        self, x: _native.Tensor, rows: IntArray, head: _native.PackedMatrix, *, softcap: float | None = None
    ) -> FloatArray:
        return self._ops.logits(x, rows, head, softcap or 0.0).numpy()

    def finite_rows(self, x: _native.Tensor) -> npt.NDArray[np.bool_]:
        values = x.numpy()
        if x.dtype == "float32":
            return np.asarray(np.isfinite(values).all(axis=1))
        return np.asarray(((values & _BFLOAT16_EXPONENT) != _BFLOAT16_EXPONENT).all(axis=1))

    # ---- after the forward ------------------------------------------------------------------------------------

    def sample(self, logits: FloatArray, batch: SampleBatch) -> SampleResult:
        return sampling.sample(self._ops, logits, batch)

    def token_logprobs(
        self, logits: FloatArray, token_ids: IntArray, num_top: int
    ) -> list[tuple[IntArray, FloatArray, IntArray]]:
        return sampling.token_logprobs(self._ops, logits, token_ids, num_top)

    def copy_blocks(self, cache: CpuKvCache, pairs: Sequence[tuple[int, int]]) -> None:
        if pairs:
            self._ops.copy_blocks(cache.native, np.array(pairs, np.int64))

    # ---- arrays in and out, for tests and tools ---------------------------------------------------------------

    def tensor(self, values: FloatArray, dtype: Literal["float32", "bfloat16"] | None = None) -> _native.Tensor:
        """A tensor of float32 values, rounded to `dtype` (None: the linear input dtype)."""
        return self._ops.tensor(np.ascontiguousarray(values, np.float32), dtype or self.dtype)

    def array(self, tensor: _native.Tensor) -> FloatArray:
        """A tensor as a float32 array; a view where it is float32 already."""
        values = tensor.numpy()
        if tensor.dtype == "float32":
            return values
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)

    # ---- probes, for benchmarks -------------------------------------------------------------------------------

    def probe_read(self, num_bytes: int, num_passes: int, *, is_huge: bool) -> float:
        """Bytes per second that all threads read from a region of that size; the best pass."""
        return _native.probe_read(self._ops, num_bytes, num_passes, is_huge)

    def probe_matrix(self, num_passes: int) -> float:
        """FLOP/s of all threads in this dtype and level, with weights that stream from the second cache."""
        return _native.probe_matrix(self._ops, num_passes)

    def probe_arithmetic(self, num_passes: int) -> float:
        """FLOP/s of all threads in this dtype and level, with operands in registers: the limit of the limit."""
        return _native.probe_arithmetic(self._ops, num_passes)

    # ---- native handles ---------------------------------------------------------------------------------------

    def _native_batch(self, batch: ForwardBatch, cache: CpuKvCache) -> _native.StepBatch:
        known = self._batch
        if known is not None and known[0] is batch and known[1] is cache:
            return known[2]
        native = _native.StepBatch(
            cache.native,
            batch.positions,
            batch.query_start,
            batch.seq_lens,
            [(group.slots, group.block_table) for group in batch.groups],
        )
        self._batch = (batch, cache, native)
        return native

    def _native_rope(self, rope: RopeTable) -> _native.RopeTable:
        known = self._ropes.get(id(rope))
        if known is None:
            known = self._ropes[id(rope)] = (rope, _native.RopeTable(rope.cos, rope.sin))
        return known[1]

    def _native_options(self, params: AttentionParams) -> _native.AttentionOptions:
        known = self._options.get(id(params))
        if known is None:
            native = _native.AttentionOptions(
                params.num_heads,
                params.num_kv_heads,
                params.head_dim,
                params.scale,
                params.window or 0,
                params.softcap or 0.0,
            )
            known = self._options[id(params)] = (params, native)
        return known[1]

    def _native_layers(self, layers: tuple[DecoderLayer, ...]) -> _native.DecoderLayers:
        known = self._layers.get(id(layers))
        if known is None:
            native = _native.DecoderLayers(
                tuple(
                    (self._native_attention_block(layer.attention), _native_feed_forward_block(layer.feed_forward))
                    for layer in layers
                )
            )
            known = self._layers[id(layers)] = (layers, native)
        return known[1]

    def _native_attention_block(self, block: AttentionBlock) -> _native.AttentionBlock:
        return _native.AttentionBlock(
            block.layer,
            block.norm,
            block.qkv,
            self._native_rope(block.rope),
            self._native_options(block.params),
            block.q_norm,
            block.k_norm,
            block.eps,
        )


def _native_feed_forward_block(block: FeedForwardBlock) -> _native.FeedForwardBlock:
    return _native.FeedForwardBlock(
        block.out,
        block.attention_post_norm,
        block.norm,
        block.gate_up,
        block.activation,
        block.down,
        block.post_norm,
        block.eps,
    )
