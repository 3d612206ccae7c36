"""A checkpoint held in memory, for tests of everything above the loaders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from octavo.base.errors import LoadError
from octavo.config.model_spec import ModelSpec


class ArrayWeight:
    """A WeightTensor over a float32 array."""

    storage = "float32"

    def __init__(self, name: str, values: np.ndarray) -> None:
        self.name = name
        self.shape = values.shape
        self.num_drops = 0
        self._values = values

    def read_f32(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        return self._values[start:stop].astype(np.float32)

    def drop(self) -> None:
        self.num_drops += 1


class DictCheckpoint:
    """What load_model needs, from a spec and arrays under Hugging Face's names."""

    def __init__(self, spec: ModelSpec, tensors: Mapping[str, np.ndarray]) -> None:
        self.spec = spec
        self._weights = {name: ArrayWeight(name, values) for name, values in tensors.items()}

    @property
    def tensor_names(self) -> list[str]:
        return list(self._weights)

    def has_tensor(self, name: str) -> bool:
        return name in self._weights

    def tensor(self, name: str) -> ArrayWeight:
        if name not in self._weights:
            raise LoadError(f"no tensor {name}")
        return self._weights[name]
