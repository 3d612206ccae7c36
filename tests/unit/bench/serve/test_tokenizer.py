from __future__ import annotations

import pytest
from fakes.hf_folder import write_hf_folder

from octavo.base.errors import ModelNotFoundError
from octavo.bench.serve.tokenizer import load_tokenizer


def test_a_folder_needs_no_weights(tmp_path):
    folder = write_hf_folder(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    tokenizer = load_tokenizer(str(folder))
    assert tokenizer.decode(tokenizer.encode("hello there")) == "hello there"


@pytest.mark.parametrize("name", ["no-such-model", "./no/such/folder"])
def test_what_is_not_there_is_named_with_what_to_do(name):
    with pytest.raises(ModelNotFoundError, match=r"no tokenizer for .*--tokenizer.*--skip-tokenizer-init"):
        load_tokenizer(name)


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match=tmp_path.name):
        load_tokenizer(str(tmp_path))
