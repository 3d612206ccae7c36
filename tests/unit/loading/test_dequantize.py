import gguf
import numpy as np
import pytest

from octavo import _native
from octavo.loading import dequantize_reference
from octavo.loading.dequantize import dequantize_f32
from octavo.loading.storage import FORMATS

PACKAGE_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def random_blocks(storage, num_blocks, seed=0):
    """Any bytes: scales include subnormal, infinite and NaN halves."""
    return np.random.default_rng(seed).integers(0, 256, storage.block_bytes * num_blocks, dtype=np.uint8)


def assert_bits_equal(actual, expected):
    """NaNs may differ in their payload."""
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(actual), nan)
    assert np.array_equal(actual[~nan].view(np.uint32), expected[~nan].view(np.uint32))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("num_blocks", [0, 1, 7, 300])
def test_native_equals_numpy_bit_for_bit(name, num_blocks):
    storage = FORMATS[name]
    blocks = random_blocks(storage, num_blocks)
    with np.errstate(all="ignore"):
        expected = dequantize_reference.dequantize(storage, blocks)
    assert_bits_equal(dequantize_f32(storage, blocks), expected)


@pytest.mark.parametrize("name", FORMATS)
def test_values_are_those_of_the_gguf_package(name):
    storage = FORMATS[name]
    blocks = random_blocks(storage, 200)
    kind = gguf.GGMLQuantizationType[PACKAGE_NAMES.get(name, name.upper())]
    rows = blocks.view({"float32": np.float32, "float16": np.float16}.get(name, np.uint8)).reshape(1, -1)
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(rows, kind).reshape(-1).astype(np.float32)
    assert_bits_equal(dequantize_f32(storage, blocks), expected)


def test_every_half_is_widened_exactly():
    halves = np.arange(65536, dtype=np.uint16)
    assert_bits_equal(
        dequantize_f32(FORMATS["float16"], halves.view(np.uint8)), halves.view(np.float16).astype(np.float32)
    )


@pytest.mark.parametrize(
    ("name", "num_bytes", "num_elements", "message"),
    [
        ("q4_0", 17, 32, "17 bytes"),
        ("q4_0", 18, 31, "31 elements"),
        ("q6_k", 210, 512, "512 elements"),
        ("q9_z", 18, 32, "q9_z"),
    ],
)
def test_wrong_sizes_never_reach_the_loops(name, num_bytes, num_elements, message):
    with pytest.raises(ValueError, match=message):
        _native.dequantize_f32(name, np.zeros(num_bytes, np.uint8), np.zeros(num_elements, np.float32))


def test_arrays_of_the_wrong_type_are_refused():
    with pytest.raises(TypeError):
        _native.dequantize_f32("q4_0", np.zeros(18, np.int32), np.zeros(32, np.float32))
    with pytest.raises(TypeError):
        _native.dequantize_f32("q4_0", np.zeros(36, np.uint8)[::2], np.zeros(32, np.float32))
    with pytest.raises(TypeError):
        _native.dequantize_f32("q4_0", np.zeros(18, np.uint8), np.zeros(32, np.float64))
