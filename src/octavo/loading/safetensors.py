"""Reader of safetensors files, one or several with an index, over mapped files. No torch, bfloat16 included.

Owns: the byte layout (source: the safetensors format description).   Does not own: what tensors mean.
Invariants: sizes are checked against the file before anything of that size is made; tensors cover the data without
overlap and without holes, as the format demands.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeGuard

from octavo.base.errors import LoadError
from octavo.loading.json_file import parse_json_object, read_json_object
from octavo.loading.mapped_file import MappedFile
from octavo.loading.storage import FORMATS, StorageFormat
from octavo.loading.stored_tensor import StoredTensor

MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MAX_DIMS = 8
INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"

DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    shape: tuple[int, ...]
    storage: StorageFormat
    start: int
    stop: int


class SafetensorsFiles:
    """All weight files of a folder: `tensors` by name. Raises LoadError naming file and tensor."""

    def __init__(self, folder: Path) -> None:
        self.tensors: dict[str, StoredTensor] = {}
        self._files: list[MappedFile] = []
        try:
            for path in list_weight_files(folder):
                self._add(path)
            self._check_index(folder)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _add(self, path: Path) -> None:
        file = MappedFile(path)
        self._files.append(file)
        data_start, entries = _read_header(file)
        for entry in entries:
            if entry.name in self.tensors:
                raise LoadError(f"{path}: tensor {entry.name!r} is also in another file of the model")
            self.tensors[entry.name] = StoredTensor(
                entry.name, entry.shape, entry.storage, file, data_start + entry.start
            )

    def _check_index(self, folder: Path) -> None:
        """Every tensor the index promises must be there."""
        if (folder / INDEX_NAME).exists():
            for name in _weight_map(folder):
                if name not in self.tensors:
                    raise LoadError(f"{folder / INDEX_NAME}: tensor {name!r} is in none of the weight files")


def list_weight_files(folder: Path) -> list[Path]:
    """The files with the weights: those of the index, else model.safetensors. Raises LoadError."""
    if (folder / INDEX_NAME).exists():
        names = sorted(set(_weight_map(folder).values()))
        for name in names:
            if PurePath(name).name != name or not name.endswith(".safetensors"):
                raise LoadError(f"{folder / INDEX_NAME}: file name {name!r} is not that of a weight file beside it")
        return [folder / name for name in names]
    if (folder / SINGLE_NAME).exists():
        return [folder / SINGLE_NAME]
    raise LoadError(f"{folder}: no {SINGLE_NAME} and no {INDEX_NAME}; weights in other formats are not read")


def _weight_map(folder: Path) -> dict[str, str]:
    path = folder / INDEX_NAME
    weight_map = read_json_object(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise LoadError(f"{path}: key 'weight_map' must be an object with tensors and their files")
    for name, file in weight_map.items():
        if not isinstance(file, str):
            raise LoadError(f"{path}: tensor {name!r}: the file name must be a string")
    return weight_map


def _read_header(file: MappedFile) -> tuple[int, list[_Entry]]:
    """(where the data begins, entries by position)."""
    if file.size < 8:
        raise LoadError(f"{file.path}: {file.size} bytes are no safetensors file")
    (length,) = struct.unpack_from("<Q", file.data, 0)
    if length > MAX_HEADER_BYTES or 8 + length > file.size:
        raise LoadError(
            f"{file.path}: the header says it has {length} bytes; the file has {file.size}, "
            f"at most {MAX_HEADER_BYTES} are allowed"
        )
    header = parse_json_object(file.data[8 : 8 + length], f"{file.path}: header")
    entries = [_read_entry(file, name, value) for name, value in header.items() if name != "__metadata__"]
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    _check_coverage(file, entries, file.size - 8 - length)
    return 8 + length, entries


def _read_entry(file: MappedFile, name: str, value: object) -> _Entry:
    what = f"{file.path}: tensor {name!r}"
    if not isinstance(value, dict):
        raise LoadError(f"{what}: its entry must be an object")
    dtype, shape, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise LoadError(f"{what}: dtype {dtype!r} is not supported (supported: {', '.join(DTYPES)})")
    if not _is_counts(shape) or not 1 <= len(shape) <= MAX_DIMS or min(shape) < 1:
        raise LoadError(f"{what}: shape {str(shape)[:80]} must be 1 to {MAX_DIMS} positive integers")
    if not _is_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise LoadError(f"{what}: data_offsets {str(offsets)[:80]} must be two integers, begin and end")
    storage = FORMATS[DTYPES[dtype]]
    num_bytes = storage.num_bytes(math.prod(shape))
    if offsets[1] - offsets[0] != num_bytes:
        raise LoadError(f"{what}: shape {shape} needs {num_bytes} bytes, data_offsets give {offsets[1] - offsets[0]}")
    return _Entry(name, tuple(shape), storage, offsets[0], offsets[1])


def _is_counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_coverage(file: MappedFile, entries: list[_Entry], data_bytes: int) -> None:
    end = 0
    for entry in entries:
        if entry.stop > data_bytes:
            raise LoadError(
                f"{file.path}: tensor {entry.name!r} ends at byte {entry.stop} of {data_bytes}; is the file complete?"
            )
        if entry.start != end:
            problem = "overlaps the tensor before it" if entry.start < end else "leaves a hole before it"
            raise LoadError(f"{file.path}: tensor {entry.name!r} {problem} (begins at {entry.start}, not {end})")
        end = entry.stop
    if end != data_bytes:
        raise LoadError(f"{file.path}: {data_bytes - end} bytes behind the last tensor belong to none")
