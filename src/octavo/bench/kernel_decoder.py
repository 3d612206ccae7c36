"""All layers of a decoder in one call, as `octavo bench kernels` measures and checks it.

Owns: layers and batches of made-up numbers.   Does not own: the other cases (kernel_cases), clocks (kernels).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from octavo.base.units import ceil_div
from octavo.bench.kernel_cases import (
    BLOCK_SIZE,
    MAX_DIFFERENCE,
    KernelCase,
    RandomWeight,
    equal_batch,
    itemsize_of,
    make_rope,
    noise,
)
from octavo.bench.kernel_shapes import KernelShape
from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import (
    AttentionBlock,
    AttentionParams,
    DecoderLayer,
    FeedForwardBlock,
    FloatArray,
    ForwardBatch,
    LinearSegment,
    OpTable,
    RopeTable,
    Tensor,
)
from octavo.kernels.reference import ReferenceOps
from octavo.proto.kv import KvCacheSpec, KvGroup


def make_layers(ops: OpTable, shape: KernelShape, num_layers: int, max_position: int) -> tuple[DecoderLayer, ...]:
    """Layers of made-up numbers. Made once for all cases: an op table keeps the layers that it has run."""
    rope = make_rope(shape, max_position)
    return tuple(_make_layer(ops, shape, layer, rope) for layer in range(num_layers))


def decoder_cases(
    ops: CpuOps, shape: KernelShape, layers: tuple[DecoderLayer, ...], num_seqs: int, past: int, new: int
) -> Iterator[KernelCase]:
    """All layers, for `num_seqs` sequences that add `new` tokens to `past` ones; logits are wanted of the last."""
    run = DecoderRun(ops, shape, layers, num_seqs, past, new)
    residual = ops.tensor(noise(num_seqs * new, shape.hidden), "float32")
    tokens, itemsize = num_seqs * new, itemsize_of(ops)
    weights = len(layers) * sum(n * k for _, n, k in shape.linears)
    seen = num_seqs * (new * past + new * (new + 1) / 2)
    kv_width = 2 * shape.num_kv_heads * shape.head_dim
    yield KernelCase(
        "decode (all layers)",
        lambda: run.decode(residual),
        weights * itemsize + len(layers) * num_seqs * (past + new) * kv_width * itemsize,
        2.0 * tokens * weights + 4.0 * len(layers) * seen * shape.num_heads * shape.head_dim,
    )


def find_decoder_differences(ops: CpuOps, shape: KernelShape) -> list[str]:
    """What disagrees with the reference in float64: two layers, two sequences; empty: nothing."""
    found, expected = (
        DecoderRun(table, shape, make_layers(table, shape, 2, 43), 2, 40, 3).decode_array()
        for table in (ops, ReferenceOps(ops.dtype, accumulate="float64"))
    )
    worst = float(np.abs(found - expected).max() / np.abs(expected).max())
    return [] if worst <= MAX_DIFFERENCE[ops.dtype] else [f"decode: off by {worst:.3g} of the largest value"]


class DecoderRun:
    """Sequences of equal length in a cache of their own; back ends of both kinds."""

    def __init__(
        self, ops: OpTable, shape: KernelShape, layers: tuple[DecoderLayer, ...], num_seqs: int, past: int, new: int
    ) -> None:
        self._ops, self._shape, self._layers = ops, shape, layers
        blocks = ceil_div(past + new, BLOCK_SIZE)
        self._cache = ops.allocate_kv(
            KvCacheSpec(
                groups=(KvGroup(kind="full", layers=tuple(range(len(layers)))),),
                block_size=BLOCK_SIZE,
                num_blocks=1 + num_seqs * blocks,
                num_kv_heads=shape.num_kv_heads,
                head_dim=shape.head_dim,
                dtype=ops.dtype,
            )
        )
        table = (1 + np.arange(num_seqs * blocks, dtype=np.int32)).reshape(num_seqs, blocks)
        last = np.arange(1, num_seqs + 1, dtype=np.int32) * np.int32(new) - np.int32(1)
        self._now = replace(equal_batch(table, past, new), logit_rows=last)
        if past:
            self._run(noise(num_seqs * past, shape.hidden, seed=1), equal_batch(table, 0, past))

    def decode(self, residual: object) -> tuple[object, object]:
        """The step that is measured."""
        return self._ops.decode(residual, self._layers, self._now, self._cache)

    def decode_array(self) -> FloatArray:
        """The same of numbers made up here: the residual of the last tokens."""
        return self._run(noise(len(self._now.tokens), self._shape.hidden, seed=2), self._now)

    def _run(self, values: Tensor, batch: ForwardBatch) -> FloatArray:
        if isinstance(self._ops, CpuOps):
            values = self._ops.tensor(values, "float32")
        found, _ = self._ops.decode(values, self._layers, batch, self._cache)
        return self._ops.array(found) if isinstance(self._ops, CpuOps) else np.asarray(found)


def _make_layer(ops: OpTable, shape: KernelShape, layer: int, rope: RopeTable) -> DecoderLayer:
    (_, qkv, hidden), (_, _, attended), _, (_, _, inner) = shape.linears
    seeds = count(10 * layer)

    def weight(*size: int) -> RandomWeight:
        return RandomWeight(*size, seed=next(seeds))

    def matrix(n: int, k: int) -> Tensor:
        return ops.pack_linear([LinearSegment(weight(n, k))])

    return DecoderLayer(
        attention=AttentionBlock(
            layer=layer,
            norm=ops.pack_vector(weight(hidden), add=1.0),
            qkv=matrix(qkv, hidden),
            rope=rope,
            params=AttentionParams(
                num_heads=shape.num_heads,
                num_kv_heads=shape.num_kv_heads,
                head_dim=shape.head_dim,
                scale=shape.head_dim**-0.5,
            ),
            eps=1e-5,
        ),
        feed_forward=FeedForwardBlock(
            out=matrix(hidden, attended),
            norm=ops.pack_vector(weight(hidden), add=1.0),
            gate_up=ops.pack_gated(LinearSegment(weight(inner, hidden)), LinearSegment(weight(inner, hidden))),
            activation="silu",
            down=matrix(hidden, inner),
            eps=1e-5,
        ),
    )
