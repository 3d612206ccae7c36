"""The op table: everything a model or the runner asks of a device. Back ends implement this protocol.

Owns: the contracts (shapes, dtypes, meaning).   Does not own: any implementation; rows that sample (sample_batch.py).
Letters: T tokens in the step, S sequences, R rows that sample, E hidden, F feed-forward, H query heads, K kv heads,
D head size, V vocabulary, P tokens per block, B blocks, G groups.

An opaque `Tensor` is an array of the back end's own (numpy for `reference` and `cpu`). A tensor that an op returns is
valid until the same model forward ends: back ends may reuse the memory in the next step.
One text (docs/architecture.md): each output element's order of floating-point operations depends on its own token only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from octavo.kernels.arrays import FloatArray, IntArray
from octavo.kernels.sample_batch import SampleBatch, SampleResult
from octavo.proto.kv import KvCacheSpec

__all__ = [
    "AttentionBlock", "AttentionParams", "CacheHandle", "DecoderLayer", "FeedForwardBlock", "FloatArray",
    "ForwardBatch", "GroupBatch", "IntArray", "KvCache", "LinearSegment", "OpTable", "RopeTable", "SampleBatch",
    "SampleResult", "Tensor", "WeightTensor",
]  # fmt: skip

Tensor = Any
CacheHandle = Any
"""A KvCache of the back end's own: what its `allocate_kv` returned."""


class WeightTensor(Protocol):
    """One tensor of a checkpoint, still in its file. Implemented by `loading/`."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape; matrices are [out, in]."""
        ...

    @property
    def storage(self) -> str:
        """float32, float16, bfloat16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k."""
        ...

    def read_f32(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """Rows [start, stop) expanded to float32, a fresh array. Row permutations are already undone."""
        ...

    def drop(self) -> None:
        """Tell the system that the file's pages are no longer needed. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class LinearSegment:
    """Some output columns of a fused linear: a matrix [N_i, K] and its bias [N_i]."""

    weight: WeightTensor
    bias: WeightTensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeTable:
    """cos and sin of every position: [max_position, D/2] float32 each; half-split convention."""

    cos: FloatArray
    sin: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionParams:
    """Constants of one layer's attention."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    window: int | None = None
    """Tokens a query sees, itself included; None: all before it."""
    softcap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBlock:
    """What comes before the attention of one layer. Tensors are packed by the op table that uses them."""

    layer: int
    norm: Tensor
    """[E]"""
    qkv: Tensor
    """[E] -> [(H + 2K) * D]"""
    rope: RopeTable
    params: AttentionParams
    eps: float
    q_norm: Tensor | None = None
    """[D], over each head of q before the rotation; so for k."""
    k_norm: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardBlock:
    """What comes behind the attention of one layer."""

    out: Tensor
    """[H * D] -> [E]"""
    norm: Tensor
    """[E]"""
    gate_up: Tensor
    """[E] -> [2F], from pack_gated"""
    activation: Literal["silu", "gelu_tanh"]
    down: Tensor
    """[F] -> [E]"""
    eps: float
    attention_post_norm: Tensor | None = None
    """[E], over what attention adds to the hidden state (Gemma 2 and 3)."""
    post_norm: Tensor | None = None
    """[E], over what the feed-forward block adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderLayer:
    """One layer of a decoder-only transformer."""

    attention: AttentionBlock
    feed_forward: FeedForwardBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBatch:
    """Where one KV group's tokens live in this step."""

    slots: IntArray
    """[T] block id * P + offset, where the token's K and V are written."""
    block_table: IntArray
    """[S, max_blocks]; entries outside the window or behind the end are 0 (the null block)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardBatch:
    """Inputs of one forward pass, gathered from the rows."""

    tokens: IntArray
    """[T]"""
    positions: IntArray
    """[T] absolute, from 0"""
    query_start: IntArray
    """[S + 1] sequence s owns tokens query_start[s] .. query_start[s + 1]"""
    seq_lens: IntArray
    """[S] tokens in the cache once this step has written its own"""
    groups: tuple[GroupBatch, ...]
    """[G] parallel to KvCacheSpec.groups"""
    logit_rows: IntArray
    """[R] indices into T of the positions whose logits are wanted, ascending"""


class KvCache(Protocol):
    """The KV memory of one device. Zeroed once. Layout is the back end's own."""

    spec: KvCacheSpec

    def read_block(self, block_id: int) -> FloatArray:
        """The canonical page [layer in group][K|V][P][K heads][D] as float32; for tests, tiers and peers."""
        ...

    def write_block(self, block_id: int, page: FloatArray) -> None:
        """Inverse of read_block."""
        ...


class OpTable(Protocol):
    """What a device can do."""

    name: str
    """reference, cpu, cuda"""
    dtype: Literal["float32", "bfloat16"]
    """Of weights, linear inputs and KV. Accumulation, residual, norms, softmax and logits are float32 always."""

    # ---- memory -----------------------------------------------------------------------------------------------

    def pack_linear(self, segments: Sequence[LinearSegment]) -> Tensor:
        """Pack matrices [N_i, K] side by side into one linear of N = sum N_i columns. Consumes the file's pages."""
        ...

    def pack_gated(self, gate: LinearSegment, up: LinearSegment) -> Tensor:
        """Pack the pair [F, K] of a gated feed-forward block for `decode`. Consumes the file's pages."""
        ...

    def pack_embedding(self, weight: WeightTensor) -> Tensor:
        """Pack a table [V, E] for `embedding` and for `logits`: one copy where the head is tied.

        The head of an untied model is packed by this too, as a table of its own.
        """
        ...

    def pack_vector(self, weight: WeightTensor, *, add: float = 0.0) -> Tensor:
        """A norm weight or the like, [N] float32, with `add` added to each element."""
        ...

    def allocate_kv(self, spec: KvCacheSpec) -> KvCache: ...

    # ---- forward ----------------------------------------------------------------------------------------------

    def embedding(self, tokens: IntArray, table: Tensor, *, scale: float = 1.0) -> Tensor:
        """[T] -> [T, E] float32, multiplied by `scale`."""
        ...

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, *, addend: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """residual = x + addend; normed = residual / rms(residual) * weight.

        x, addend [T, E] float32 -> normed [T, E] in the linear input dtype, residual [T, E] float32.
        Source: RMSNorm, arXiv 1910.07467.
        """
        ...

    def linear(self, x: Tensor, weights: Tensor) -> Tensor:
        """[T, K] in the linear input dtype -> [T, N] float32."""
        ...

    def norm_only(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """RMSNorm of x [T, E] float32 -> [T, E] float32, no addend and no rounding (post-norms of Gemma)."""
        ...

    def rotary_write(
        self,
        qkv: Tensor,
        batch: ForwardBatch,
        cache: CacheHandle,
        layer: int,
        rope: RopeTable,
        params: AttentionParams,
        *,
        q_norm: Tensor | None = None,
        k_norm: Tensor | None = None,
        eps: float = 0.0,
    ) -> Tensor:
        """Split qkv [T, (H + 2K) * D], norm (if given) and rotate q and k, store K and V of model layer `layer`.

        Returns q [T, H, D] (float32 or the back end's attention input dtype). K and V are rounded to the cache's dtype.
        Source: RoFormer, arXiv 2104.09864.
        """
        ...

    def paged_attention(
        self, q: Tensor, batch: ForwardBatch, cache: CacheHandle, layer: int, params: AttentionParams
    ) -> Tensor:
        """Causal attention of q [T, H, D] over the paged cache -> [T, H * D] in the linear input dtype.

        Mixed batches: any number of queries per sequence. Source: PagedAttention, arXiv 2309.06180.
        """
        ...

    def gated_activation(self, gate_up: Tensor, kind: Literal["silu", "gelu_tanh"]) -> Tensor:
        """[T, 2F] float32 (gate, then up) -> act(gate) * up, [T, F] in the linear input dtype."""
        ...

    def decode(
        self, residual: Tensor, layers: tuple[DecoderLayer, ...], batch: ForwardBatch, cache: CacheHandle
    ) -> tuple[Tensor, Tensor]:
        """All layers of a decoder: residual [T, E] float32, as `embedding` gives it, through `layers` in order.

        Each is h = x + post_norm(out(attention(norm(x)))), then h + post_norm(down(act(gate) * up)) of norm(h); K and V
        of all T are written. Returns the residual of `batch.logit_rows` behind the last layer, [R, E] float32, and what
        the heads of the last layer found, [T, H * D] in the linear input dtype. To the bits of the single ops.
        Sources: Attention Is All You Need, arXiv 1706.03762; GLU variants, arXiv 2002.05202.
        """
        ...

    def logits(self, x: Tensor, rows: IntArray, head: Tensor, *, softcap: float | None = None) -> Tensor:
        """Rows `rows` [R] of x [T, E] (normed) times the head -> [R, V] float32."""
        ...

    def finite_rows(self, x: Tensor) -> npt.NDArray[np.bool_]:
        """[T]: whether all of x [T, E], in the linear input dtype, is finite in that row. Cost: one pass over x."""
        ...

    # ---- after the forward ------------------------------------------------------------------------------------

    def sample(self, logits: Tensor, batch: SampleBatch) -> SampleResult:
        """Gumbel-max sampling of R rows. See SampleBatch for the order of processing."""
        ...

    def token_logprobs(
        self, logits: Tensor, token_ids: IntArray, num_top: int
    ) -> list[tuple[IntArray, FloatArray, IntArray]]:
        """Per row (ids, logprobs, ranks): `token_ids[r]` first, then the `num_top` best. For prompt logprobs."""
        ...

    def copy_blocks(self, cache: CacheHandle, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination), all layers of the page."""
        ...
