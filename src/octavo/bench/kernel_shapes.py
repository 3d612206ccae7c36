"""Model shapes that kernels are measured at, and the work a step of them does.

Owns: the shapes.   Does not own: how they are run (kernel_cases) or reported (kernels).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelShape:
    """Sizes of one decoder-only model. Letters as in kernels/ops.py."""

    name: str
    num_layers: int
    hidden: int
    intermediate: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab: int

    @property
    def linears(self) -> tuple[tuple[str, int, int], ...]:
        """(name, N, K) of the matrices of one layer."""
        qkv = (self.num_heads + 2 * self.num_kv_heads) * self.head_dim
        return (
            ("qkv", qkv, self.hidden),
            ("out", self.hidden, self.num_heads * self.head_dim),
            ("gate_up", 2 * self.intermediate, self.hidden),
            ("down", self.hidden, self.intermediate),
        )


SHAPES = {
    shape.name: shape
    for shape in (
        KernelShape(
            name="smollm2-135m",
            num_layers=30,
            hidden=576,
            intermediate=1536,
            num_heads=9,
            num_kv_heads=3,
            head_dim=64,
            vocab=49152,
        ),
        KernelShape(
            name="qwen2.5-0.5b",
            num_layers=24,
            hidden=896,
            intermediate=4864,
            num_heads=14,
            num_kv_heads=2,
            head_dim=64,
            vocab=151936,
        ),
        KernelShape(
            name="gemma-3-270m",
            num_layers=18,
            hidden=640,
            intermediate=2048,
            num_heads=4,
            num_kv_heads=1,
            head_dim=256,
            vocab=262144,
        ),
    )
}
