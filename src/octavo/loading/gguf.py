"""Reader of GGUF files, versions 2 and 3: metadata and the table of tensors, over a mapped file.

Owns: the byte layout (source: the GGUF specification, ggml).   Does not own: what keys and names mean.
Invariants: every count and offset is checked against the file's size before anything of that size is made, so a
damaged file costs no more memory than an honest one; every error is a LoadError naming file and key or tensor.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from octavo.base.errors import LoadError
from octavo.base.units import align_up
from octavo.loading.mapped_file import MappedFile
from octavo.loading.storage import FORMATS, StorageFormat

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 16
MAX_KEY_BYTES = 65535
MAX_NAME_BYTES = 64
MAX_DIMS = 4
MAX_ARRAY_DEPTH = 4
MIN_ENTRY_BYTES = 13
"""Smallest metadata entry: key length, value type and one byte."""
MIN_TENSOR_BYTES = 32
"""Smallest tensor entry: name length, one dimension, type and offset."""

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 10: "<Q", 11: "<q", 12: "<d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_LENGTH = struct.Struct("<Q")

GGML_TYPES = {
    0: "float32",
    1: "float16",
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    12: "q4_k",
    13: "q5_k",
    14: "q6_k",
    30: "bfloat16",
}
"""Numbers of the tensor types that are supported."""


@dataclass(frozen=True, slots=True)
class GgufTensorInfo:
    """Where one tensor lies. `shape` is logical: outermost first, so matrices are [out, in]."""

    name: str
    shape: tuple[int, ...]
    storage: StorageFormat
    offset: int
    """From the start of the file."""
    num_bytes: int


class StringArray:
    """An array of strings that is decoded when asked for, and not kept: vocabularies are large."""

    def __init__(self, file: MappedFile, key: str, offset: int, count: int) -> None:
        self._file = file
        self._key = key
        self._offset = offset
        self._count = count

    def __len__(self) -> int:
        return self._count

    def read(self) -> list[str]:
        """All strings. Raises LoadError when one is not UTF-8."""
        data, offset, unpack = self._file.data, self._offset, _LENGTH.unpack_from
        strings = []
        try:
            for _ in range(self._count):
                start = offset + 8
                offset = start + unpack(data, offset)[0]
                strings.append(data[start:offset].decode())
        except UnicodeDecodeError as error:
            raise LoadError(
                f"{self._file.path}: key {self._key!r}: string {len(strings)} is not UTF-8 ({error.reason})"
            ) from error
        return strings


class GgufFile:
    """An open file: `metadata` (scalars, str, numpy arrays, StringArray, lists for nested arrays) and `tensors`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = MappedFile(path)
        self.metadata: dict[str, object] = {}
        self.tensors: dict[str, GgufTensorInfo] = {}
        try:
            self._read_all()
        except BaseException:
            self.file.close()
            raise

    def close(self) -> None:
        self.file.close()

    def _read_all(self) -> None:
        cursor = _Cursor(self.file)
        num_tensors, num_entries = _read_header(cursor)
        for index in range(num_entries):
            key = cursor.string(f"metadata entry {index}", MAX_KEY_BYTES)
            if key in self.metadata:
                raise cursor.error(f"key {key!r} appears twice")
            self.metadata[key] = _read_value(cursor, key, cursor.scalar("<I", f"key {key!r}"))
        pending = [_read_tensor_entry(cursor, index) for index in range(num_tensors)]
        data_start = align_up(cursor.offset, alignment := self._alignment())
        for name, shape, storage, offset in pending:
            if name in self.tensors:
                raise cursor.error(f"tensor {name!r} appears twice")
            if offset % alignment:
                raise cursor.error(f"tensor {name!r}: offset {offset} is not a multiple of the alignment {alignment}")
            num_bytes = storage.num_bytes(_product(shape))
            if data_start + offset + num_bytes > self.file.size:
                raise cursor.error(
                    f"tensor {name!r}: its {num_bytes} bytes at {data_start + offset} end behind the file's "
                    f"{self.file.size}; is the file complete?"
                )
            self.tensors[name] = GgufTensorInfo(name, shape, storage, data_start + offset, num_bytes)
        self._check_overlap()

    def _alignment(self) -> int:
        value = self.metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(value, int) or not 0 < value <= MAX_ALIGNMENT or value & (value - 1):
            raise LoadError(
                f"{self.path}: key 'general.alignment' = {value!r} must be a power of two of at most {MAX_ALIGNMENT}"
            )
        return value

    def _check_overlap(self) -> None:
        infos = sorted(self.tensors.values(), key=lambda info: info.offset)
        for first, second in itertools.pairwise(infos):
            if first.offset + first.num_bytes > second.offset:
                raise LoadError(f"{self.path}: tensors {first.name!r} and {second.name!r} overlap")


class _Cursor:
    """A position in the file that cannot run over its end."""

    def __init__(self, file: MappedFile) -> None:
        self.file = file
        self.offset = 0

    @property
    def remaining(self) -> int:
        return self.file.size - self.offset

    def error(self, problem: str) -> LoadError:
        return LoadError(f"{self.file.path}: {problem}")

    def skip(self, num_bytes: int, what: str) -> int:
        """Move on, return the old position."""
        if num_bytes > self.remaining:
            raise self.error(f"{what}: needs {num_bytes} bytes, the file has {self.remaining} left")
        start = self.offset
        self.offset += num_bytes
        return start

    def scalar(self, layout: str, what: str) -> int:
        value: int = struct.unpack_from(layout, self.file.data, self.skip(struct.calcsize(layout), what))[0]
        return value

    def string(self, what: str, max_bytes: int | None = None) -> str:
        length = self.scalar("<Q", what)
        if max_bytes is not None and length > max_bytes:
            raise self.error(f"{what}: a name of {length} bytes, at most {max_bytes} are allowed")
        start = self.skip(length, what)
        try:
            return self.file.data[start : start + length].decode()
        except UnicodeDecodeError as error:
            raise self.error(f"{what}: the text is not UTF-8 ({error.reason})") from error


def _read_header(cursor: _Cursor) -> tuple[int, int]:
    """(number of tensors, number of metadata entries)."""
    start = cursor.skip(4, "header")
    if cursor.file.data[start : start + 4] != MAGIC:
        raise cursor.error("not a GGUF file (no magic)")
    version = cursor.scalar("<I", "header")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        reason = "big-endian files are" if swapped in VERSIONS else f"GGUF version {version} is"
        raise cursor.error(f"{reason} not supported (versions 2 and 3, little-endian)")
    num_tensors = cursor.scalar("<Q", "header")
    num_entries = cursor.scalar("<Q", "header")
    if num_entries * MIN_ENTRY_BYTES + num_tensors * MIN_TENSOR_BYTES > cursor.remaining:
        raise cursor.error(
            f"header: {num_entries} metadata entries and {num_tensors} tensors do not fit into {cursor.file.size} bytes"
        )
    return num_tensors, num_entries


def _read_value(cursor: _Cursor, key: str, value_type: int, depth: int = 0) -> object:
    what = f"key {key!r}"
    if value_type in _SCALARS:
        return cursor.scalar(_SCALARS[value_type], what)
    if value_type == _BOOL:
        return bool(cursor.scalar("<B", what))
    if value_type == _STRING:
        return cursor.string(what)
    if value_type == _ARRAY:
        return _read_array(cursor, key, depth + 1)
    raise cursor.error(f"{what}: value type {value_type} is unknown")


def _read_array(cursor: _Cursor, key: str, depth: int) -> object:
    what = f"key {key!r}"
    if depth > MAX_ARRAY_DEPTH:
        raise cursor.error(f"{what}: arrays are nested deeper than {MAX_ARRAY_DEPTH}")
    item_type = cursor.scalar("<I", what)
    count = cursor.scalar("<Q", what)
    if item_type in _SCALARS or item_type == _BOOL:
        layout = "<?" if item_type == _BOOL else _SCALARS[item_type]
        num_bytes = struct.calcsize(layout) * count
        start = cursor.skip(num_bytes, what)
        return np.frombuffer(cursor.file.data[start : start + num_bytes], np.dtype(layout))
    if item_type == _STRING:
        return _skip_strings(cursor, key, count)
    if item_type != _ARRAY:
        raise cursor.error(f"{what}: value type {item_type} is unknown")
    if count * 12 > cursor.remaining:
        raise cursor.error(f"{what}: {count} arrays do not fit into the file")
    return [_read_array(cursor, key, depth + 1) for _ in range(count)]


def _skip_strings(cursor: _Cursor, key: str, count: int) -> StringArray:
    if count * 8 > cursor.remaining:
        raise cursor.error(f"key {key!r}: {count} strings do not fit into the file")
    first = offset = cursor.offset
    data, unpack, last = cursor.file.data, _LENGTH.unpack_from, cursor.file.size - 8
    for index in range(count):
        if offset > last:
            raise cursor.error(f"key {key!r}: string {index} of {count} ends behind the file")
        offset += 8 + unpack(data, offset)[0]
    cursor.skip(offset - first, f"key {key!r}")
    return StringArray(cursor.file, key, first, count)


def _read_tensor_entry(cursor: _Cursor, index: int) -> tuple[str, tuple[int, ...], StorageFormat, int]:
    name = cursor.string(f"tensor {index}", MAX_NAME_BYTES)
    what = f"tensor {name!r}"
    num_dims = cursor.scalar("<I", what)
    if not 1 <= num_dims <= MAX_DIMS:
        raise cursor.error(f"{what}: {num_dims} dimensions, 1 to {MAX_DIMS} are allowed")
    dims = [cursor.scalar("<Q", what) for _ in range(num_dims)]
    if min(dims) < 1 or max(dims) >= 2**63:
        raise cursor.error(f"{what}: dimensions {dims} must lie in [1, 2^63)")
    type_number = cursor.scalar("<I", what)
    if type_number not in GGML_TYPES:
        known = ", ".join(name.upper() for name in GGML_TYPES.values())
        raise cursor.error(f"{what}: tensor type {type_number} is not supported (supported: {known})")
    storage = FORMATS[GGML_TYPES[type_number]]
    if dims[0] % storage.block_size:
        raise cursor.error(f"{what}: rows of {dims[0]} elements are no whole blocks of {storage.block_size}")
    return name, tuple(reversed(dims)), storage, cursor.scalar("<Q", what)


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result
