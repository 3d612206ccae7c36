"""A tiny model of the oracle, run step by step on any back end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fakes.batches import Chunk, cache_spec, forward_batch
from fakes.checkpoint import DictCheckpoint
from fakes.tiny_weights import tiny_tensors

from octavo.config.model_spec import ModelSpec
from octavo.kernels.dispatch import Backend, make_ops
from octavo.models import load_model

FOLDER = Path(__file__).parent.parent / "data" / "oracle" / "tiny"
MAX_BLOCKS = 8


def load_oracle(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(prompt [T], positions [N], logits [N, V] at those positions)."""
    with np.load(FOLDER / f"{name}.npz") as data:
        return data["prompt"], data["positions"], data["logits"]


class TinyRun:
    """One model with a cache; `run` computes chunks step by step and returns the logits of sequence 0."""

    def __init__(
        self,
        spec: ModelSpec,
        tensors: dict[str, np.ndarray] | None = None,
        dtype: str = "float32",
        *,
        backend: Backend = "reference",
        isa: str = "auto",
        block_size: int = 16,
    ) -> None:
        self.ops = make_ops(backend, dtype, isa=isa, num_threads=2)  # type: ignore[arg-type]
        self.model = load_model(DictCheckpoint(spec, tensors or tiny_tensors(spec)), self.ops, spec.max_position)
        num_blocks = 1 + 3 * len(self.model.kv_groups) * MAX_BLOCKS
        self.spec = cache_spec(self.model, block_size=block_size, num_blocks=num_blocks, dtype=dtype)
        self.cache = self.ops.allocate_kv(self.spec)

    def run(self, steps: list[list[Chunk]]) -> np.ndarray:
        """Logits [T of sequence 0, V]."""
        rows = []
        for chunks in steps:
            batch = forward_batch(chunks, self.spec, max_blocks=MAX_BLOCKS)
            logits = self.model.logits(self.model.forward(batch, self.cache), batch.logit_rows)
            start = 0
            for chunk in chunks:
                if chunk.seq == 0:
                    rows.append(np.array(logits[start : start + len(chunk.tokens)]))
                start += len(chunk.tokens)
        return np.concatenate(rows)
