import struct

import gguf
import numpy as np
import pytest
from fakes.gguf_file import (
    ARRAY,
    BOOL,
    F32,
    FLOAT32,
    INT32,
    STRING,
    UINT32,
    UINT64,
    GgufBuilder,
    pack_string,
    tiny_llama_gguf,
)

from octavo.base.errors import LoadError
from octavo.loading.gguf import GgufFile


def simple() -> GgufBuilder:
    return GgufBuilder().add("a", UINT32, 1).add_tensor("x", (4, 2)).add_tensor("y", (4,))


def open_bytes(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return GgufFile(path)


def test_every_type_of_value_is_read(tmp_path):
    kinds = {
        0: 255,
        1: -1,
        2: 65535,
        3: -2,
        4: 2**32 - 1,
        5: -3,
        6: 0.5,
        7: True,
        8: "häé",
        10: 2**64 - 1,
        11: -4,
        12: 1e300,
    }
    builder = GgufBuilder()
    for kind, value in kinds.items():
        builder.add(f"k{kind}", kind, value)
        builder.add(f"array{kind}", ARRAY, (kind, [value, value]))
    builder.add("nested", ARRAY, (ARRAY, [(INT32, [1, 2]), (INT32, [])]))
    file = open_bytes(tmp_path, builder.build())
    for kind, value in kinds.items():
        assert file.metadata[f"k{kind}"] == value
        array = file.metadata[f"array{kind}"]
        assert (array.read() if kind == STRING else array.tolist()) == [value, value]
    assert [part.tolist() for part in file.metadata["nested"]] == [[1, 2], []]


@pytest.mark.parametrize("version", [2, 3])
def test_tensors_have_their_outermost_dimension_first(tmp_path, version):
    builder = simple()
    builder.version = version
    file = open_bytes(tmp_path, builder.build())
    assert file.tensors["x"].shape == (2, 4)
    assert file.tensors["x"].num_bytes == 32
    assert file.tensors["y"].offset % 32 == 0


def test_a_file_by_the_gguf_package_is_read(tmp_path):
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("n", 7)
    writer.add_array("words", ["a", "", "ü"])
    writer.add_custom_alignment(64)
    values = np.arange(64, dtype=np.float32).reshape(2, 32)
    writer.add_tensor("w", values)
    writer.add_tensor(
        "q", gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0
    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GgufFile(path)
    assert file.metadata["n"] == 7
    assert file.metadata["words"].read() == ["a", "", "ü"]
    info = file.tensors["w"]
    assert np.array_equal(file.file.view(info.offset, info.num_bytes).view(np.float32).reshape(2, 32), values)
    assert (file.tensors["q"].shape, file.tensors["q"].storage.name) == ((2, 32), "q8_0")


HOSTILE = {
    "no magic": (GgufBuilder(magic=b"GGML"), "not a GGUF file"),
    "version 1": (GgufBuilder(version=1), "version 1"),
    "big-endian": (GgufBuilder(version=0x03000000), "big-endian"),
    "2^63 entries": (GgufBuilder(num_entries=2**63), "do not fit"),
    "2^63 tensors": (GgufBuilder(num_tensors=2**63), "do not fit"),
    "key of 2^63 bytes": (GgufBuilder(num_entries=1, raw_entries=struct.pack("<Q", 2**63) + bytes(32)), "entry 0"),
    "long key": (GgufBuilder().add("k" * 70000, UINT32, 1), "at most 65535"),
    "key not UTF-8": (GgufBuilder(num_entries=1, raw_entries=pack_string(b"\xff") + bytes(8)), "not UTF-8"),
    "value not UTF-8": (GgufBuilder().add("bad", STRING, b"\xff"), "'bad'.*not UTF-8"),
    "duplicate key": (
        GgufBuilder(num_entries=2, raw_entries=2 * (pack_string("twice") + struct.pack("<II", UINT32, 1))),
        "'twice' appears twice",
    ),
    "unknown value type": (
        GgufBuilder(num_entries=1, raw_entries=pack_string("odd") + struct.pack("<IQ", 99, 0)),
        "'odd'.*99",
    ),
    "unknown item type": (
        GgufBuilder(num_entries=1, raw_entries=pack_string("odd") + struct.pack("<IIQ", ARRAY, 99, 0)),
        "'odd'.*99",
    ),
    "array of 2^63 numbers": (
        GgufBuilder(num_entries=1, raw_entries=pack_string("big") + struct.pack("<IIQ", ARRAY, UINT64, 2**63)),
        "'big'",
    ),
    "array of 2^63 strings": (
        GgufBuilder(num_entries=1, raw_entries=pack_string("big") + struct.pack("<IIQ", ARRAY, STRING, 2**63)),
        "'big'",
    ),
    "array of 2^63 arrays": (
        GgufBuilder(num_entries=1, raw_entries=pack_string("big") + struct.pack("<IIQ", ARRAY, ARRAY, 2**63)),
        "'big'",
    ),
    "string of 2^63 bytes in an array": (
        GgufBuilder(
            num_entries=1, raw_entries=pack_string("big") + struct.pack("<IIQQ", ARRAY, STRING, 1, 2**63) + bytes(64)
        ),
        "'big'",
    ),
    "deep arrays": (
        GgufBuilder(
            num_entries=1, raw_entries=pack_string("deep") + struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 9
        ),
        "'deep'.*nested",
    ),
    "alignment 0": (simple().add("general.alignment", UINT32, 0), "general.alignment"),
    "alignment 3": (simple().add("general.alignment", UINT32, 3), "general.alignment"),
    "alignment 2^31": (simple().add("general.alignment", UINT32, 2**31), "general.alignment"),
    "alignment as text": (simple().add("general.alignment", STRING, "32"), "general.alignment"),
    "no dimensions": (simple().add_tensor("z", (), data=bytes(4)), "'z': 0 dimensions"),
    "2^32-1 dimensions": (simple().add_tensor("z", (1,), num_dims=2**32 - 1), "'z'"),
    "zero dimension": (simple().add_tensor("z", (0, 4)), "'z'"),
    "negative dimension": (simple().add_tensor("z", (2**64 - 1,), data=bytes(4)), "'z'"),
    "overflowing size": (simple().add_tensor("z", (2**40, 2**40), data=bytes(4)), "'z'"),
    "unknown tensor type": (simple().add_tensor("z", (4,), kind=77), "'z': tensor type 77"),
    "half a block": (simple().add_tensor("z", (16,), kind=2), "'z': rows of 16"),
    "long tensor name": (simple().add_tensor("z" * 65, (4,)), "at most 64"),
    "tensor name not UTF-8": (simple().add_tensor(b"\xff", (4,)), "not UTF-8"),
    "offset behind the end": (simple().add_tensor("z", (4,), offset=2**40), "'z'.*complete"),
    "offset 2^64-32": (simple().add_tensor("z", (4,), offset=2**64 - 32), "'z'.*complete"),
    "unaligned offset": (simple().add_tensor("z", (4,), offset=33), "'z': offset 33"),
    "overlap": (simple().add_tensor("z", (4,), offset=0), "overlap"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_error_naming_what_is_wrong(tmp_path, case):
    builder, message = HOSTILE[case]
    with pytest.raises(LoadError, match=message) as caught:
        open_bytes(tmp_path, builder.build())
    assert "model.gguf" in str(caught.value)


def test_two_tensors_of_one_name_are_refused(tmp_path):
    builder = simple()
    builder.tensors.append(builder.tensors[0])
    with pytest.raises(LoadError, match="'x' appears twice"):
        open_bytes(tmp_path, builder.build())


def test_a_file_cut_off_anywhere_is_one_error(tmp_path):
    data = GgufBuilder().add("a", ARRAY, (STRING, ["x", "yz"])).add("b", BOOL, True).add_tensor("x", (4,), F32).build()
    open_bytes(tmp_path, data)
    # Of the padding behind the last tensor nothing is needed.
    for size in range(len(data) - 16):
        with pytest.raises(LoadError):
            open_bytes(tmp_path, data[:size])


def test_a_string_of_an_array_that_is_not_utf8_is_named(tmp_path):
    file = open_bytes(tmp_path, GgufBuilder().add("words", ARRAY, (STRING, ["a", b"\xfe"])).build())
    with pytest.raises(LoadError, match="'words': string 1"):
        file.metadata["words"].read()


def test_numbers_in_arrays_keep_their_type(tmp_path):
    file = open_bytes(tmp_path, tiny_llama_gguf().add("scores", ARRAY, (FLOAT32, [0.5])).build())
    assert file.metadata["scores"].dtype == np.float32
    assert file.metadata["tokenizer.ggml.token_type"].dtype == np.int32
