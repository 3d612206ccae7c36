import pytest
from fakes.gguf_file import tiny_llama_gguf

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading import open_checkpoint


def test_a_folder_with_one_gguf_file_is_that_file(tmp_path):
    path = tiny_llama_gguf().write(tmp_path / "a.gguf")
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.path == path


def test_a_gguf_file_needs_no_suffix(tmp_path):
    with open_checkpoint(tiny_llama_gguf().write(tmp_path / "blob")) as checkpoint:
        assert checkpoint.spec.model_type == "llama"


def test_a_folder_with_two_gguf_files_is_ambiguous(tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(LoadError, match="2 GGUF files"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"x", "give the folder"),
        ("model.bin", b"\x80\x02", "neither"),
        ("empty", b"", "neither"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadError, match=message):
        open_checkpoint(tmp_path / name)


def test_an_empty_folder_and_a_missing_path_are_told_apart(tmp_path):
    with pytest.raises(LoadError, match=r"no config\.json"):
        open_checkpoint(tmp_path)
    with pytest.raises(ModelNotFoundError, match="no such file"):
        open_checkpoint(tmp_path / "gone")
