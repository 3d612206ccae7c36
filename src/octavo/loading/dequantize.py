"""Stored bytes -> float32, by the native module.

Owns: the Python face of `native/gguf`.   The obvious numpy version, which tests compare with, is
`dequantize_reference.py`. Both are bit-equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from octavo import _native
from octavo.loading.mapped_file import ByteArray
from octavo.loading.storage import StorageFormat


def dequantize_f32(storage: StorageFormat, data: ByteArray) -> npt.NDArray[np.float32]:
    """[whole blocks of bytes] -> [elements] float32. Releases the GIL. Cost: one pass over both."""
    out = np.empty(data.size // storage.block_bytes * storage.block_size, np.float32)
    _native.dequantize_f32(storage.name, data, out)
    return out
