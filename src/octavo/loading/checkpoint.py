"""Checkpoint: one model on disk, opened. Spec, tensors by Hugging Face name, tokenizer, defaults for generation.

Owns: the life of the mapped files.   Does not own: any format (gguf_checkpoint.py, hf_checkpoint.py).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from octavo.base.errors import LoadError
from octavo.config.model_spec import ModelSpec
from octavo.loading.stored_tensor import StoredTensor
from octavo.loading.tokenizer import Tokenizer


class Checkpoint:
    """Weights stay in their files until they are read. Use as a context manager, or call `close`."""

    def __init__(
        self,
        path: Path,
        spec: ModelSpec,
        tensors: Mapping[str, StoredTensor],
        *,
        tokenizer_loader: Callable[[], Tokenizer],
        closers: Iterable[Callable[[], None]],
        chat_template: str | None = None,
        generation_defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.path = path
        self.spec = spec
        self.chat_template = chat_template
        self.generation_defaults = dict(generation_defaults or {})
        self._tensors = dict(tensors)
        self._tokenizer_loader = tokenizer_loader
        self._closers = tuple(closers)

    @property
    def tensor_names(self) -> list[str]:
        """Sorted."""
        return sorted(self._tensors)

    def has_tensor(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> StoredTensor:
        """Raises LoadError naming the tensor when the files do not have it."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise LoadError(f"{self.path}: tensor {name!r} is missing")
        return tensor

    def num_weight_bytes(self, dtype: Literal["float32", "bfloat16"]) -> int:
        """Bytes of all weights expanded to `dtype`; vectors stay float32."""
        matrix_item = 4 if dtype == "float32" else 2
        return sum(
            math.prod(tensor.shape) * (matrix_item if len(tensor.shape) > 1 else 4) for tensor in self._tensors.values()
        )

    def identity(self) -> str:
        """32 hexadecimal digits, equal for equal models on any machine: of the name, the spec and the tensors' table.

        The name is that of the file or folder behind all links, which in a hub's cache is a digest of the content. No
        weight is read, so two models of one shape in files of one name and one size have the same identity.
        """
        state = hashlib.blake2b(repr((self.path.resolve().name, self.spec)).encode(), digest_size=16)
        for name, tensor in sorted(self._tensors.items()):
            state.update(repr((name, tensor.shape, tensor.storage, tensor.file_bytes)).encode())
        return state.hexdigest()

    def load_tokenizer(self) -> Tokenizer:
        """A new tokenizer each time: keep it. Raises LoadError."""
        return self._tokenizer_loader()

    def close(self) -> None:
        """Unmap the files. Arrays that were read stay valid. Safe to call twice."""
        for close in self._closers:
            close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
