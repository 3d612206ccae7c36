import json
import struct

import numpy as np
import pytest
import safetensors.numpy

from octavo.base.errors import LoadError
from octavo.loading.safetensors import INDEX_NAME, SafetensorsFiles

ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def pack(header, data=b"", *, length=None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def write(folder, data, name="model.safetensors"):
    (folder / name).write_bytes(data)
    return folder


def entry(start, stop, shape=None, dtype="F32"):
    return {"dtype": dtype, "shape": shape or [(stop - start) // 4], "data_offsets": [start, stop]}


def test_all_three_dtypes_are_read(tmp_path):
    values = np.array([1.0, -0.5, 3.0, 2.0], np.float32)
    bf16 = (values.view(np.uint32) >> 16).astype(np.uint16)
    header = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [16, 24]},
        "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        "c": {"dtype": "F16", "shape": [4, 1], "data_offsets": [24, 32]},
    }
    data = values.tobytes() + bf16.tobytes() + values.astype(np.float16).tobytes()
    files = SafetensorsFiles(write(tmp_path, pack(header, data)))
    for name, shape in {"a": (4,), "b": (2, 2), "c": (4, 1)}.items():
        assert np.array_equal(files.tensors[name].read_f32(), values.reshape(shape))
    assert files.tensors["b"].storage == "bfloat16"


def test_a_file_of_the_safetensors_package_is_read(tmp_path):
    tensors = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.arange(3, dtype=np.float16)}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    files = SafetensorsFiles(tmp_path)
    assert all(np.array_equal(files.tensors[name].read_f32(), value) for name, value in tensors.items())


def write_shards(folder, weight_map, shards):
    (folder / INDEX_NAME).write_text(json.dumps({"weight_map": weight_map}))
    for name, header in shards.items():
        write(folder, pack(header, bytes(8 * len(header))), name)
    return folder


def test_shards_are_one_model(tmp_path):
    shards = {"m-1.safetensors": {"a": ONE}, "m-2.safetensors": {"b": ONE}}
    files = SafetensorsFiles(write_shards(tmp_path, {"a": "m-1.safetensors", "b": "m-2.safetensors"}, shards))
    assert sorted(files.tensors) == ["a", "b"]


@pytest.mark.parametrize(
    ("weight_map", "shards", "message"),
    [
        ({"a": "gone.safetensors"}, {}, "gone.safetensors"),
        ({"a": "m.safetensors", "b": "m.safetensors"}, {"m.safetensors": {"a": ONE}}, "'b' is in none"),
        (
            {"a": "m.safetensors", "b": "n.safetensors"},
            {"m.safetensors": {"a": ONE}, "n.safetensors": {"a": ONE}},
            "'a'",
        ),
        ({"a": "../m.safetensors"}, {}, "not that of a weight file beside it"),
        ({"a": "/etc/passwd"}, {}, "not that of a weight file beside it"),
        ({"a": "m.bin"}, {}, "not that of a weight file beside it"),
        ({"a": 3}, {}, "must be a string"),
        ({}, {}, "weight_map"),
        ([], {}, "weight_map"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path, weight_map, shards, message):
    with pytest.raises(LoadError, match=message):
        SafetensorsFiles(write_shards(tmp_path, weight_map, shards))


HOSTILE = {
    "empty": (b"", "empty"),
    "seven bytes": (bytes(7), "no safetensors file"),
    "header of 2^63 bytes": (pack(b"{}", length=2**63), "header says"),
    "header longer than the file": (pack(b"{}", length=3), "header says"),
    "header not JSON": (pack(b"{nope"), "not valid JSON"),
    "header not UTF-8": (pack(b'{"\xff": 1}'), "not valid JSON"),
    "header a list": (pack([]), "must be a JSON object"),
    "deep header": (pack(b"[" * 100_000), "not valid JSON"),
    "entry not an object": (pack({"x": 3}), "'x'"),
    "duplicate name": (pack(b'{"x": 1, "x": 2}'), "'x' appears twice"),
    "unknown dtype": (pack({"x": entry(0, 8, [1], "I64")}, bytes(8)), "'x': dtype 'I64'"),
    "dtype a list": (pack({"x": entry(0, 8, [2], ["F32"])}, bytes(8)), "'x': dtype"),
    "no shape": (pack({"x": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)), "'x': shape"),
    "zero dimension": (pack({"x": entry(0, 0, [0])}), "'x': shape"),
    "negative dimension": (pack({"x": entry(0, 8, [-2])}, bytes(8)), "'x': shape"),
    "fractional dimension": (pack({"x": entry(0, 8, [2.0])}, bytes(8)), "'x': shape"),
    "true as dimension": (pack({"x": entry(0, 4, [True])}, bytes(4)), "'x': shape"),
    "too many dimensions": (pack({"x": entry(0, 4, [1] * 9)}, bytes(4)), "'x': shape"),
    "overflowing shape": (pack({"x": entry(0, 8, [2**62, 2**62])}, bytes(8)), "'x': shape"),
    "shape and bytes differ": (pack({"x": entry(0, 8, [3])}, bytes(8)), "'x': shape"),
    "offsets swapped": (pack({"x": entry(8, 0, [2])}, bytes(8)), "'x': data_offsets"),
    "negative offset": (pack({"x": entry(-8, 0, [2])}, bytes(8)), "'x': data_offsets"),
    "one offset": (pack({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)), "'x': data_offsets"),
    "behind the end": (pack({"x": ONE}, bytes(7)), "'x'.*complete"),
    "overlap": (pack({"x": ONE, "y": entry(4, 12)}, bytes(12)), "'y' overlaps"),
    "same place": (pack({"x": ONE, "y": ONE}, bytes(8)), "'y' overlaps"),
    "hole": (pack({"x": ONE, "y": entry(12, 20)}, bytes(20)), "'y' leaves a hole"),
    "hole in front": (pack({"x": entry(4, 12)}, bytes(12)), "'x' leaves a hole"),
    "bytes at the end": (pack({"x": ONE}, bytes(9)), "1 bytes behind"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_error_naming_what_is_wrong(tmp_path, case):
    data, message = HOSTILE[case]
    with pytest.raises(LoadError, match=message) as caught:
        SafetensorsFiles(write(tmp_path, data))
    assert "model.safetensors" in str(caught.value)


def test_a_file_cut_off_anywhere_is_one_error(tmp_path):
    data = pack({"x": ONE}, bytes(8))
    for size in range(len(data)):
        with pytest.raises(LoadError):
            SafetensorsFiles(write(tmp_path, data[:size]))


def test_other_forms_of_weights_are_not_read(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(LoadError, match=r"no model\.safetensors"):
        SafetensorsFiles(tmp_path)
