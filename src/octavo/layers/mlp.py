"""The gated feed-forward block. Source: GLU variants, arXiv 2002.05202."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.config.model_spec import Activation, ModelSpec
from octavo.kernels.ops import OpTable, Tensor
from octavo.layers.linear import Linear
from octavo.layers.weights import Columns, WeightReader


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """x [T, E] in the linear input dtype -> down(act(gate(x)) * up(x)) [T, E] float32."""

    ops: OpTable
    gate_up: Linear
    down: Linear
    activation: Activation

    @classmethod
    def load(cls, ops: OpTable, reader: WeightReader, spec: ModelSpec, name: str) -> GatedMlp:
        """`name`: of the block in the checkpoint, e.g. "model.layers.0.mlp". Raises LoadError."""
        hidden, inner, bias = spec.hidden_size, spec.intermediate_size, spec.mlp_bias
        gate_up = [Columns(f"{name}.gate_proj", inner, bias), Columns(f"{name}.up_proj", inner, bias)]
        return cls(
            ops=ops,
            gate_up=Linear.load(ops, reader, gate_up, hidden),
            down=Linear.load(ops, reader, [Columns(f"{name}.down_proj", hidden, bias)], inner),
            activation=spec.activation,
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(self.ops.gated_activation(self.gate_up(x), self.activation))
