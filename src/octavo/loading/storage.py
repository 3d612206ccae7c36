"""Storage formats of tensors: how many bytes hold how many elements.

Source of the block formats: the GGUF specification (ggml). A block holds consecutive elements of one row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StorageFormat:
    """`block_size` elements take `block_bytes` bytes."""

    name: str
    block_size: int
    block_bytes: int

    def num_bytes(self, num_elements: int) -> int:
        """Bytes of `num_elements`, a multiple of block_size."""
        return num_elements // self.block_size * self.block_bytes


FORMATS: dict[str, StorageFormat] = {
    fmt.name: fmt
    for fmt in (
        StorageFormat("float32", 1, 4),
        StorageFormat("float16", 1, 2),
        StorageFormat("bfloat16", 1, 2),
        StorageFormat("q4_0", 32, 18),
        StorageFormat("q4_1", 32, 20),
        StorageFormat("q5_0", 32, 22),
        StorageFormat("q5_1", 32, 24),
        StorageFormat("q8_0", 32, 34),
        StorageFormat("q4_k", 256, 144),
        StorageFormat("q5_k", 256, 176),
        StorageFormat("q6_k", 256, 210),
    )
}
