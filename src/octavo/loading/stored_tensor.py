"""One tensor of a checkpoint, still in its mapped file; expanded row range by row range when asked.

Owns: the meaning of rows, undoing the row permutation of GGUF's llama files.   Does not own: file formats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.base.units import align_up
from octavo.loading.dequantize import dequantize_f32
from octavo.loading.mapped_file import MappedFile
from octavo.loading.storage import StorageFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayout:
    """How the file's rows differ from the rows that are promised."""

    interleaved_head_dim: int | None = None
    """Set: within each head of that many rows the file holds pairs (i, i + D/2) side by side; undone on reading."""
    add: float = 0.0
    """Added to each element: GGUF holds Gemma's norm weights as 1 + w."""


class StoredTensor:
    """Implements `kernels.ops.WeightTensor`. `shape` is logical: matrices are [out, in]; rows are along axis 0."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        format: StorageFormat,
        file: MappedFile,
        offset: int,
        layout: TensorLayout | None = None,
    ) -> None:
        self.name = name
        self.shape = shape
        self.format = format
        self._file = file
        self._offset = offset
        self._layout = layout or TensorLayout()

    @property
    def storage(self) -> str:
        return self.format.name

    @property
    def num_bytes(self) -> int:
        """As stored."""
        return self.format.num_bytes(math.prod(self.shape))

    @property
    def file_bytes(self) -> int:
        """Size of the whole file that it is in."""
        return self._file.size

    def read_f32(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.float32]:
        """Rows [start, stop) as a fresh float32 array [stop - start, ...]. Peak memory: the result, plus two heads."""
        values = self._read(start, stop)
        if self._layout.add:
            values += np.float32(self._layout.add)
        return values

    def drop(self) -> None:
        """Give the file's pages back. Safe to call twice, and to read again afterwards."""
        self._file.drop(self._offset, self.num_bytes)

    def _read(self, start: int, stop: int | None) -> npt.NDArray[np.float32]:
        num_rows = self.shape[0]
        stop = num_rows if stop is None else stop
        if not 0 <= start <= stop <= num_rows:
            raise IndexError(f"tensor {self.name!r}: rows [{start}, {stop}) of {num_rows}")
        if len(self.shape) == 1 and self.format.block_size > 1:
            values = dequantize_f32(self.format, self._file.view(self._offset, self.num_bytes))
            return np.array(values[start:stop])
        head_dim = self._layout.interleaved_head_dim
        if head_dim is None:
            return self._read_file_rows(start, stop)
        first = start // head_dim * head_dim
        last = align_up(stop, head_dim)
        rows = self._read_file_rows(first, last)
        tail = self.shape[1:]
        rows = rows.reshape(-1, head_dim // 2, 2, *tail).swapaxes(1, 2).reshape(last - first, *tail)
        return rows if (first, last) == (start, stop) else rows[start - first : stop - first].copy()

    def _read_file_rows(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        tail = self.shape[1:]
        row_bytes = self.format.num_bytes(math.prod(tail))
        data = self._file.view(self._offset + start * row_bytes, (stop - start) * row_bytes)
        return dequantize_f32(self.format, data).reshape(stop - start, *tail)
