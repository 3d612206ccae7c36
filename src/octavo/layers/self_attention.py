"""Self-attention over the paged cache: projections, rotation, attention, output projection.

Owns: which matrices there are and how they are fused.   Does not own: constants of the layer (attention/params.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.config.model_spec import ModelSpec
from octavo.kernels.ops import AttentionParams, OpTable, RopeTable, Tensor
from octavo.layers.linear import Linear
from octavo.layers.step import StepContext
from octavo.layers.weights import Columns, WeightReader


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNorm:
    """RMSNorm over each head of q and of k, before the rotation: weights [D] float32."""

    q: Tensor
    k: Tensor
    eps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfAttention:
    """x [T, E] in the linear input dtype -> [T, E] float32; K and V of the step are written on the way."""

    ops: OpTable
    layer: int
    params: AttentionParams
    rope: RopeTable
    qkv: Linear
    out: Linear
    head_norm: HeadNorm | None = None

    def __call__(self, x: Tensor, step: StepContext) -> Tensor:
        norm = self.head_norm
        q = self.ops.rotary_write(
            self.qkv(x),
            step.batch,
            step.cache,
            self.layer,
            self.rope,
            self.params,
            q_norm=norm.q if norm else None,
            k_norm=norm.k if norm else None,
            eps=norm.eps if norm else 0.0,
        )
        return self.out(self.ops.paged_attention(q, step.batch, step.cache, self.layer, self.params))


def load_projections(ops: OpTable, reader: WeightReader, spec: ModelSpec, name: str) -> tuple[Linear, Linear]:
    """The fused q, k, v and the output projection of the block `name`, e.g. "model.layers.0.self_attn"."""
    q_size, kv_size = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    bias = spec.attention_bias
    qkv = [
        Columns(f"{name}.q_proj", q_size, bias),
        Columns(f"{name}.k_proj", kv_size, bias),
        Columns(f"{name}.v_proj", kv_size, bias),
    ]
    out = [Columns(f"{name}.o_proj", spec.hidden_size, spec.attention_out_bias)]
    return Linear.load(ops, reader, qkv, spec.hidden_size), Linear.load(ops, reader, out, q_size)
