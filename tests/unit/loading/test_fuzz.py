"""Any byte of a file may be wrong: the answer is a model or a LoadError, never anything else."""

import shutil

import pytest
from fakes.gguf_file import tiny_llama_gguf
from fakes.hf_folder import write_hf_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.base.errors import LoadError
from octavo.loading import open_checkpoint

SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
GGUF = tiny_llama_gguf().build()
GGUF_HEAD = GGUF.index(b"output_norm.weight") + 2000
"""Changes in the weights are other weights; all structure is before this byte."""

changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4)


def damage(data: bytes, flips, size: int) -> bytes:
    changed = bytearray(data)
    for place, value in flips:
        changed[int(place * size)] = value
    return bytes(changed)


def read_all(path) -> str:
    """Everything that a loader can be asked for; the text of its error names the file."""
    try:
        _read_all(path)
    except LoadError as error:
        return str(error)
    return f"{path}: fine"


def _read_all(path):
    with open_checkpoint(path) as checkpoint:
        for name in checkpoint.tensor_names:
            tensor = checkpoint.tensor(name)
            tensor.read_f32(0, min(2, tensor.shape[0]))
        tokenizer = checkpoint.load_tokenizer()
        tokenizer.decode(tokenizer.encode("he said 1, 2"))


@SETTINGS
@given(changes)
def test_gguf_with_wrong_bytes(tmp_path, flips):
    path = tmp_path / "model.gguf"
    path.write_bytes(damage(GGUF, flips, GGUF_HEAD))
    assert str(tmp_path) in read_all(path)


@SETTINGS
@given(st.integers(0, len(GGUF) - 1))
def test_gguf_cut_off(tmp_path, size):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF[:size])
    with pytest.raises(LoadError):
        _read_all(path)


@pytest.fixture(scope="module")
def hf_folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("hf") / "tiny")


@SETTINGS
@given(
    st.sampled_from(
        ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
    ),
    changes,
)
def test_hugging_face_folder_with_wrong_bytes(hf_folder, tmp_path, name, flips):
    folder = tmp_path / "tiny"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(hf_folder, folder)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(damage(data, flips, min(len(data), 4000)))
    assert str(tmp_path) in read_all(folder)
