import gguf
import numpy as np
import pytest

from octavo.loading.mapped_file import MappedFile
from octavo.loading.storage import FORMATS
from octavo.loading.stored_tensor import StoredTensor, TensorLayout


def stored(tmp_path, data, shape, name="float32", layout=None):
    path = tmp_path / "weights"
    path.write_bytes(b"head" + data)
    return StoredTensor("t", shape, FORMATS[name], MappedFile(path), 4, layout)


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 3), (2, 5), (5, 6), (4, 4)])
def test_row_ranges_are_those_of_the_whole(tmp_path, start, stop):
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    tensor = stored(tmp_path, values.tobytes(), (6, 4))
    assert np.array_equal(tensor.read_f32(start, stop), values[start:stop])
    assert tensor.read_f32(start, stop).flags.owndata or tensor.read_f32(start, stop).base.flags.owndata


def test_quantized_rows_are_cut_at_blocks(tmp_path):
    rng = np.random.default_rng(0)
    packed = gguf.quantize(rng.standard_normal((4, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q5_0)
    tensor = stored(tmp_path, packed.tobytes(), (4, 64), "q5_0")
    expected = gguf.dequantize(packed, gguf.GGMLQuantizationType.Q5_0)
    assert tensor.storage == "q5_0"
    assert np.array_equal(tensor.read_f32(1, 3), expected[1:3])


def test_elements_of_vectors_are_rows_even_inside_a_block(tmp_path):
    packed = gguf.quantize(np.arange(64, dtype=np.float32)[None], gguf.GGMLQuantizationType.Q8_0)
    tensor = stored(tmp_path, packed.tobytes(), (64,), "q8_0")
    assert np.array_equal(tensor.read_f32(5, 40), tensor.read_f32()[5:40])
    plain = stored(tmp_path, np.arange(6, dtype=np.float32).tobytes(), (6,))
    assert plain.read_f32(2, 4).tolist() == [2, 3]


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 8), (3, 5), (7, 17), (23, 24), (9, 9)])
@pytest.mark.parametrize("width", [3, None])
def test_interleaved_heads_are_put_in_order_in_every_range(tmp_path, start, stop, width):
    head_dim, num_heads = 8, 3
    shape = (num_heads * head_dim,) if width is None else (num_heads * head_dim, width)
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    # What writers of such files do: the two halves of each head are put side by side.
    halves = values.reshape(num_heads, 2, head_dim // 2, -1)
    written = halves.swapaxes(1, 2).reshape(shape)
    tensor = stored(tmp_path, written.tobytes(), shape, layout=TensorLayout(interleaved_head_dim=head_dim))
    assert np.array_equal(tensor.read_f32(start, stop), values[start:stop])


def test_an_offset_is_added(tmp_path):
    tensor = stored(tmp_path, np.full(4, 1.5, np.float32).tobytes(), (4,), layout=TensorLayout(add=-1.0))
    assert tensor.read_f32().tolist() == [0.5] * 4


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 7), (7, 8)])
def test_rows_that_do_not_exist_are_an_error(tmp_path, start, stop):
    tensor = stored(tmp_path, bytes(96), (6, 4))
    with pytest.raises(IndexError, match="'t': rows"):
        tensor.read_f32(start, stop)


def test_dropping_twice_and_reading_after_is_allowed(tmp_path):
    values = np.arange(4096, dtype=np.float32).reshape(64, 64)
    tensor = stored(tmp_path, values.tobytes(), (64, 64))
    tensor.drop()
    tensor.drop()
    assert np.array_equal(tensor.read_f32(), values)
