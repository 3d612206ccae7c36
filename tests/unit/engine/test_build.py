"""What an engine is made of, and the models that none is made of."""

from __future__ import annotations

import dataclasses

import pytest
from fakes.hf_folder import write_hf_folder
from fakes.tiny_models import LLAMA, TINY_SPECS

from octavo.config.load import load_config
from octavo.engine.build import model_identity, resolve_options
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
