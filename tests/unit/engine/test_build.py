"""What an engine is made of, and the models that none is made of."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from fakes.hf_folder import write_hf_folder, write_safetensors
from fakes.tiny_models import LLAMA, TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.base.errors import LoadError
from octavo.config.load import load_config
from octavo.engine.build import build_engine, model_identity, resolve_options
from octavo.loading import open_checkpoint

SMALL = {"num_gpu_blocks_override": 40, "max_num_seqs": 8, "max_num_batched_tokens": 64, "num_threads": 1}
SMALL |= {"kernel_backend": "reference", "dtype": "float32", "cpu_isa": "scalar"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("models") / "tiny")


def identity_of(folder, **changes):
    """changes: group of the configuration -> fields of it."""
    resolved = resolve_options(load_config({"model": str(folder), **SMALL}, usage="offline"))
    for group, fields in changes.items():
        changed = dataclasses.replace(getattr(resolved, group), **fields)
        resolved = dataclasses.replace(resolved, **{group: changed})
    with open_checkpoint(folder) as checkpoint:
        return model_identity(checkpoint, resolved)


def test_the_identity_of_a_model_is_the_same_wherever_it_lies(folder, tmp_path):
    copy = write_hf_folder(tmp_path / "tiny")
    link = tmp_path / "link"
    link.symlink_to(copy)
    assert identity_of(folder) == identity_of(folder) == identity_of(copy) == identity_of(link)


@pytest.mark.parametrize(
    "changes",
    [{"model": {"dtype": "bfloat16"}}, {"kernels": {"kernel_backend": "cpu"}}, {"kernels": {"cpu_isa": "avx2"}}],
    ids=str,
)
def test_what_rounds_differently_has_another_identity(folder, changes):
    assert identity_of(folder, **changes) != identity_of(folder)


def test_models_that_differ_have_identities_that_differ(folder, tmp_path):
    specs = [
        TINY_SPECS["llama_untied"],
        dataclasses.replace(LLAMA, rope=dataclasses.replace(LLAMA.rope, theta=5e5)),
        dataclasses.replace(LLAMA, norm_eps=1e-4),
    ]
    folders = [write_hf_folder(tmp_path / str(number) / "tiny", spec) for number, spec in enumerate(specs)]
    folders += [folder, write_hf_folder(tmp_path / "tuned")]
    assert len({identity_of(folder) for folder in folders}) == len(folders)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_damaged_weights_are_found_before_the_first_request(tmp_path, backend):
    folder = write_hf_folder(tmp_path / "damaged")
    tensors = tiny_tensors(LLAMA, 1)
    tensors["model.layers.1.mlp.down_proj.weight"][3, 5] = np.nan
    write_safetensors(folder / "model.safetensors", tensors)
    config = load_config({"model": str(folder), **SMALL, "kernel_backend": backend}, usage="offline")
    with pytest.raises(LoadError, match=r"damaged'.* not finite: its weights are damaged") as error:
        build_engine(config)
    # The traceback still holds the executor: it was shut down, not collected.
    assert error.tb is not None
    assert not [thread for thread in threading.enumerate() if thread.name == "octavo-executor"]
