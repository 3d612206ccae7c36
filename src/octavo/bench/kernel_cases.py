"""What is measured of the native kernels: each case a call, the bytes it must move, the operations it must do.

Owns: the inputs of the calls and their check against the reference.   Does not own: clocks, limits, tables (kernels).
Invariant: matrices of all layers are streamed in turn, as in a step, so that none is found in a cache by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from octavo.base.units import ceil_div
from octavo.bench.kernel_shapes import KernelShape
from octavo.kernels.cpu import CpuOps
from octavo.kernels.ops import (
    AttentionParams,
    FloatArray,
    ForwardBatch,
    GroupBatch,
    IntArray,
    LinearSegment,
    OpTable,
    RopeTable,
    SampleBatch,
)
from octavo.kernels.reference import ReferenceOps
from octavo.proto.kv import KvCacheSpec, KvGroup

BLOCK_SIZE = 32
MAX_DIFFERENCE = {"float32": 1e-4, "bfloat16": 0.05}
"""From the reference in float64, as a share of the largest value."""


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One line of the table."""

    name: str
    run: Callable[[], object]
    num_bytes: float
    num_flops: float


class RandomWeight:
    """A WeightTensor that is made up as it is read."""

    storage = "float32"

    def __init__(self, *shape: int, seed: int = 0) -> None:
        self.name, self.shape = "random", shape
        self._seed = seed

    def read_f32(self, start: int = 0, stop: int | None = None) -> FloatArray:
        count = (self.shape[0] if stop is None else stop) - start
        noise = np.random.default_rng((self._seed, start)).standard_normal((count, *self.shape[1:]), np.float32)
        return noise * np.float32(self.shape[-1] ** -0.5)

    def drop(self) -> None:
        pass


def linear_cases(ops: CpuOps, shape: KernelShape, num_rows: int) -> Iterator[KernelCase]:
    """Each matrix of a layer, all layers in turn, and the head."""
    itemsize = itemsize_of(ops)
    for name, n, k in shape.linears:
        layers = [ops.pack_linear([LinearSegment(RandomWeight(n, k))]) for _ in range(shape.num_layers)]
        x = ops.tensor(noise(num_rows, k))
        yield KernelCase(
            f"linear {name}",
            lambda layers=layers, x=x: [ops.linear(x, weights) for weights in layers],  # type: ignore[misc]
            len(layers) * n * k * itemsize,
            2.0 * len(layers) * num_rows * n * k,
        )
    head = ops.pack_embedding(RandomWeight(shape.vocab, shape.hidden))
    x, rows = ops.tensor(noise(num_rows, shape.hidden)), np.arange(num_rows, dtype=np.int32)
    size = shape.vocab * shape.hidden
    written = 4 * num_rows * shape.vocab
    yield KernelCase("logits", lambda: ops.logits(x, rows, head), size * itemsize + written, 2.0 * num_rows * size)


def row_cases(ops: CpuOps, shape: KernelShape, num_rows: int) -> Iterator[KernelCase]:
    """Norm, activation: their inputs come from a cache if they fit one, as in a step."""
    itemsize, hidden, inner = itemsize_of(ops), shape.hidden, shape.intermediate
    x, addend = (ops.tensor(noise(num_rows, hidden), "float32") for _ in range(2))
    weight = ops.pack_vector(RandomWeight(hidden))
    yield KernelCase(
        "rms_norm", lambda: ops.rms_norm(x, weight, 1e-5, addend=addend), num_rows * hidden * (12 + itemsize), 0
    )
    gate_up = ops.tensor(noise(num_rows, 2 * inner), "float32")
    yield KernelCase("gated silu", lambda: ops.gated_activation(gate_up, "silu"), num_rows * inner * (8 + itemsize), 0)


def attention_cases(ops: CpuOps, shape: KernelShape, num_seqs: int, past: int, new: int) -> Iterator[KernelCase]:
    """Rotation with the write, and attention, of `num_seqs` sequences that add `new` tokens to `past` ones."""
    run = AttentionRun(ops, shape, num_seqs, past, new)
    itemsize, tokens = itemsize_of(ops), num_seqs * new
    q_size, kv_size = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    yield KernelCase("rotary_write", run.write, tokens * (q_size + 2 * kv_size) * (4 + itemsize), 0)
    q = run.write()
    seen = num_seqs * (new * past + new * (new + 1) / 2)  # pairs of query and key
    bytes_read = num_seqs * (past + new) * 2 * kv_size * itemsize + 2 * tokens * q_size * itemsize
    yield KernelCase("paged_attention", lambda: run.attend(q), bytes_read, 4.0 * seen * q_size)


def sample_cases(ops: CpuOps, shape: KernelShape, num_rows: int) -> Iterator[KernelCase]:
    """Sampling by kind of row; the least it must do is to read the logits once."""
    logits = noise(num_rows, shape.vocab) * np.float32(3)
    for name, values in (
        ("greedy", {}),
        ("random", {"temperature": 0.8}),
        ("top-k 50", {"temperature": 0.8, "top_k": 50}),
        ("top-p 0.9", {"temperature": 0.8, "top_p": 0.9}),
        ("greedy, 5 logprobs", {"num_logprobs": 5}),
    ):
        batch = make_sample_batch(num_rows, **values)
        yield KernelCase(
            f"sample {name}",
            lambda batch=batch: ops.sample(logits, batch),  # type: ignore[misc]
            logits.nbytes,
            0,
        )


class AttentionRun:
    """Sequences of equal length in a cache of one layer; back ends of both kinds."""

    def __init__(self, ops: OpTable, shape: KernelShape, num_seqs: int, past: int, new: int) -> None:
        self._ops = ops
        length = past + new
        blocks = ceil_div(length, BLOCK_SIZE)
        spec = KvCacheSpec(
            groups=(KvGroup(kind="full", layers=(0,)),),
            block_size=BLOCK_SIZE,
            num_blocks=1 + num_seqs * blocks,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            dtype=ops.dtype,
        )
        self._params = AttentionParams(
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            scale=shape.head_dim**-0.5,
        )
        self._rope = make_rope(shape, length)
        self._cache = ops.allocate_kv(spec)
        self._table = (1 + np.arange(num_seqs * blocks, dtype=np.int32)).reshape(num_seqs, blocks)
        width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim
        if past:
            self._fill(noise(num_seqs * past, width), equal_batch(self._table, 0, past))
        self._given = self._tensor(noise(num_seqs * new, width, seed=1))
        self._now = equal_batch(self._table, past, new)

    def write(self) -> object:
        """rotary_write of the new tokens."""
        return self._ops.rotary_write(self._given, self._now, self._cache, 0, self._rope, self._params)

    def attend(self, q: object) -> object:
        """paged_attention of the new tokens."""
        return self._ops.paged_attention(q, self._now, self._cache, 0, self._params)

    def _fill(self, qkv: FloatArray, batch: ForwardBatch) -> None:
        self._ops.rotary_write(self._tensor(qkv), batch, self._cache, 0, self._rope, self._params)

    def _tensor(self, values: FloatArray) -> object:
        return self._ops.tensor(values, "float32") if isinstance(self._ops, CpuOps) else values


def equal_batch(table: IntArray, start: int, count: int) -> ForwardBatch:
    """Tokens start .. start + count of every sequence of a block table [S, max_blocks]; no logits wanted."""
    num_seqs = len(table)
    positions = np.tile(np.arange(start, start + count, dtype=np.int32), num_seqs)
    seqs = np.repeat(np.arange(num_seqs), count)
    slots = table[seqs, positions // BLOCK_SIZE] * BLOCK_SIZE + positions % BLOCK_SIZE
    return ForwardBatch(
        tokens=np.zeros(num_seqs * count, np.int32),
        positions=positions,
        query_start=np.arange(num_seqs + 1, dtype=np.int32) * np.int32(count),
        seq_lens=np.full(num_seqs, start + count, np.int32),
        groups=(GroupBatch(slots=slots, block_table=table),),
        logit_rows=np.zeros(0, np.int32),
    )


def make_rope(shape: KernelShape, max_position: int) -> RopeTable:
    """Usual angles for every position below."""
    half = shape.head_dim // 2
    angles = np.arange(max_position)[:, None] * 10000.0 ** (-np.arange(half) / half)
    return RopeTable(cos=np.cos(angles).astype(np.float32), sin=np.sin(angles).astype(np.float32))


def make_sample_batch(
    num_rows: int, *, temperature: float = 0, top_k: int = 0, top_p: float = 1, num_logprobs: int = -1
) -> SampleBatch:
    """Rows of one kind, each with a seed of its own."""

    def full(value: float, dtype: type = np.float32) -> np.ndarray:
        return np.full(num_rows, value, dtype)

    nothing = (None,) * num_rows
    return SampleBatch(
        temperature=full(temperature),
        top_k=full(top_k, np.int32),
        top_p=full(top_p),
        min_p=full(0),
        repetition_penalty=full(1),
        frequency_penalty=full(0),
        presence_penalty=full(0),
        seeds=np.arange(num_rows, dtype=np.uint64),
        positions=full(7, np.int64),
        history=nothing,
        bias=nothing,
        allowed=nothing,
        allowed_bits=nothing,
        num_logprobs=full(num_logprobs, np.int32),
        logprob_token_ids=nothing,
    )


def find_differences(ops: CpuOps, shape: KernelShape) -> list[str]:
    """What disagrees with the reference in float64 at this shape; empty: nothing. A few rows of each kernel."""
    reference = ReferenceOps(ops.dtype, accumulate="float64")
    problems: list[str] = []

    def compare(name: str, found: FloatArray, expected: FloatArray) -> None:
        scale = max(1.0, float(np.abs(expected).max()))
        worst = float(np.abs(found - expected).max()) / scale
        if not worst <= MAX_DIFFERENCE[ops.dtype]:
            problems.append(f"{name}: off by {worst:.3g} of the largest value")

    for name, n, k in shape.linears:
        x, segments = noise(3, k), [LinearSegment(RandomWeight(min(n, 500), k))]
        found = ops.array(ops.linear(ops.tensor(x), ops.pack_linear(segments)))
        rounded = ops.array(ops.tensor(x))
        compare(f"linear {name}", found, reference.linear(rounded, reference.pack_linear(segments)))
    x, weight = noise(3, shape.hidden), RandomWeight(shape.hidden)
    normed = ops.array(ops.rms_norm(ops.tensor(x, "float32"), ops.pack_vector(weight), 1e-5)[0])
    compare("rms_norm", normed, reference.rms_norm(x, reference.pack_vector(weight), 1e-5)[0])
    gate_up = noise(3, 2 * shape.intermediate)
    gated = ops.array(ops.gated_activation(ops.tensor(gate_up, "float32"), "silu"))
    compare("gated silu", gated, reference.gated_activation(gate_up, "silu"))
    own, other = (AttentionRun(table, shape, 2, 140, 3) for table in (ops, reference))
    compare("paged_attention", ops.array(own.attend(own.write())), other.attend(other.write()))  # type: ignore[arg-type]
    logits, batch = noise(8, shape.vocab) * np.float32(3), make_sample_batch(8, temperature=0.8, top_k=50, top_p=0.9)
    if ops.sample(logits, batch).token_ids.tolist() != reference.sample(logits, batch).token_ids.tolist():
        problems.append("sample: other tokens")
    return problems


def noise(*shape: int, seed: int = 0) -> FloatArray:
    """Normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def itemsize_of(ops: CpuOps) -> int:
    """Bytes of an element of weights, linear inputs and KV."""
    return 4 if ops.dtype == "float32" else 2
