"""Dequantization in numpy, one obvious function a format: what the native version must equal bit for bit.

Source of the layouts: the GGUF specification (ggml). All arithmetic is float32, product first, then sum or difference.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from octavo.loading.mapped_file import ByteArray
from octavo.loading.storage import StorageFormat

FloatArray = npt.NDArray[np.float32]


def dequantize(storage: StorageFormat, data: ByteArray) -> FloatArray:
    """[whole blocks of bytes] -> [elements] float32."""
    blocks = data.reshape(-1, storage.block_bytes)
    return _DECODERS[storage.name](blocks).reshape(-1)


def _half(columns: ByteArray) -> FloatArray:
    """Two bytes a row -> [blocks, 1] float32."""
    return columns.copy().view(np.float16).astype(np.float32)


def _nibbles(packed: ByteArray) -> ByteArray:
    """[blocks, n] -> [blocks, 2n]: all low halves, then all high halves."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _bits(packed: ByteArray) -> ByteArray:
    """[blocks, n] -> [blocks, 8n], lowest bit first."""
    return np.unpackbits(packed, axis=1, bitorder="little")


def _float32(blocks: ByteArray) -> FloatArray:
    return blocks.copy().view(np.float32)


def _float16(blocks: ByteArray) -> FloatArray:
    return blocks.copy().view(np.float16).astype(np.float32)


def _bfloat16(blocks: ByteArray) -> FloatArray:
    return (blocks.copy().view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _q4_0(blocks: ByteArray) -> FloatArray:
    return _half(blocks[:, :2]) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: ByteArray) -> FloatArray:
    return _half(blocks[:, :2]) * _nibbles(blocks[:, 4:]).astype(np.float32) + _half(blocks[:, 2:4])


def _q5_0(blocks: ByteArray) -> FloatArray:
    values = _nibbles(blocks[:, 6:]) | (_bits(blocks[:, 2:6]) << 4)
    return _half(blocks[:, :2]) * (values.astype(np.float32) - 16)


def _q5_1(blocks: ByteArray) -> FloatArray:
    values = _nibbles(blocks[:, 8:]) | (_bits(blocks[:, 4:8]) << 4)
    return _half(blocks[:, :2]) * values.astype(np.float32) + _half(blocks[:, 2:4])


def _q8_0(blocks: ByteArray) -> FloatArray:
    return _half(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _k_scales(packed: ByteArray) -> tuple[ByteArray, ByteArray]:
    """12 bytes -> 8 scales and 8 minima of six bits: the upper two bits of the last four hide in the first eight."""
    first, second, third = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first & 63, (third & 15) | ((first >> 6) << 4)], axis=1)
    minima = np.concatenate([second & 63, (third >> 4) | ((second >> 6) << 4)], axis=1)
    return scales, minima


def _k_quant(blocks: ByteArray, values: ByteArray) -> FloatArray:
    """values [blocks, 8, 32]: d * scale * value - dmin * minimum, one scale and minimum for 32 values."""
    scales, minima = _k_scales(blocks[:, 4:16])
    step = (_half(blocks[:, 0:2]) * scales.astype(np.float32))[:, :, None]
    base = (_half(blocks[:, 2:4]) * minima.astype(np.float32))[:, :, None]
    return step * values.astype(np.float32) - base


def _split_nibbles(packed: ByteArray) -> ByteArray:
    """[blocks, 128] -> [blocks, 8, 32]: 32 bytes hold one group in their low and the next in their high halves."""
    quarters = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([quarters & 15, quarters >> 4], axis=2).reshape(-1, 8, 32)


def _q4_k(blocks: ByteArray) -> FloatArray:
    return _k_quant(blocks, _split_nibbles(blocks[:, 16:]))


def _q5_k(blocks: ByteArray) -> FloatArray:
    shifts = np.arange(8, dtype=np.uint8)[None, :, None]
    high: ByteArray = (blocks[:, None, 16:48] >> shifts) & np.uint8(1)
    return _k_quant(blocks, _split_nibbles(blocks[:, 48:]) | (high << np.uint8(4)))


def _q6_k(blocks: ByteArray) -> FloatArray:
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[None, None, :, None]
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    values = ((low | (high << 4)).reshape(-1, 16, 16).astype(np.float32)) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (_half(blocks[:, 208:210]) * scales)[:, :, None] * values


_DECODERS = {
    "float32": _float32,
    "float16": _float16,
    "bfloat16": _bfloat16,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
}
