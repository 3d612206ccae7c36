"""One layer of a decoder-only transformer, in the two arrangements of norms that there are.

Owns: the order of the pieces and the residual stream.   Does not own: which pieces a model has (models/).
The residual sum of a block is taken by the norm that follows it: a layer receives (residual, addend) and returns the
same pair, so that sum and norm are one op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from octavo.kernels.ops import Tensor
from octavo.layers.mlp import GatedMlp
from octavo.layers.norm import RmsNorm
from octavo.layers.self_attention import SelfAttention
from octavo.layers.step import StepContext


class DecoderLayer(Protocol):
    """One layer. residual, addend [T, E] float32; the hidden state is their sum (addend None: nothing to add)."""

    def __call__(self, residual: Tensor, addend: Tensor | None, step: StepContext) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreNormLayer:
    """x + attention(norm(x)), then x + mlp(norm(x)): Llama and most that followed."""

    attention_norm: RmsNorm
    attention: SelfAttention
    mlp_norm: RmsNorm
    mlp: GatedMlp

    def __call__(self, residual: Tensor, addend: Tensor | None, step: StepContext) -> tuple[Tensor, Tensor]:
        x, residual = self.attention_norm.enter(residual, addend)
        x, residual = self.mlp_norm.enter(residual, self.attention(x, step))
        return residual, self.mlp(x)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandwichNormLayer:
    """x + norm(attention(norm(x))), then x + norm(mlp(norm(x))): Gemma 2 and 3."""

    attention_norm: RmsNorm
    attention: SelfAttention
    attention_post_norm: RmsNorm
    mlp_norm: RmsNorm
    mlp: GatedMlp
    mlp_post_norm: RmsNorm

    def __call__(self, residual: Tensor, addend: Tensor | None, step: StepContext) -> tuple[Tensor, Tensor]:
        x, residual = self.attention_norm.enter(residual, addend)
        attended = self.attention_post_norm(self.attention(x, step))
        x, residual = self.mlp_norm.enter(residual, attended)
        return residual, self.mlp_post_norm(self.mlp(x))
