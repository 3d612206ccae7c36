"""Loading models from checkpoints in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.checkpoint import DictCheckpoint
from fakes.tiny_models import LLAMA, TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.base.errors import LoadError
from octavo.kernels.dispatch import make_ops
from octavo.models import load_model


def load(checkpoint: DictCheckpoint, progress=None):
    return load_model(checkpoint, make_ops("reference", "float32"), 64, progress)


@pytest.mark.parametrize("model_type", ["gpt_neox", "load", "decoder", "../llama", "os", "Llama", ""])
def test_an_unknown_model_type_is_refused_by_name(model_type: str) -> None:
    checkpoint = DictCheckpoint(replace(LLAMA, model_type=model_type), tiny_tensors(LLAMA))
    with pytest.raises(LoadError, match=r"model_type '.*' is not supported"):
        load(checkpoint)


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.norm.weight",
        "model.layers.1.self_attn.k_proj.weight",
        "model.layers.0.self_attn.k_proj.bias",
        "model.layers.0.mlp.down_proj.weight",
    ],
)
def test_a_wrong_shape_names_tensor_expected_and_found(name: str) -> None:
    spec = TINY_SPECS["qwen2"]
    tensors = tiny_tensors(spec)
    expected = list(tensors[name].shape)
    tensors[name] = np.zeros([size + 1 for size in expected], np.float32)
    with pytest.raises(LoadError) as error:
        load(DictCheckpoint(spec, tensors))
    assert name in str(error.value)
    assert str(expected) in str(error.value)
    assert str(list(tensors[name].shape)) in str(error.value)


def test_every_tensor_that_a_model_has_must_be_there() -> None:
    spec = TINY_SPECS["llama_untied"]
    tensors = tiny_tensors(spec)
    for name in tensors:
        rest = {other: values for other, values in tensors.items() if other != name}
        with pytest.raises(LoadError, match=name):
            load(DictCheckpoint(spec, rest))


def test_every_tensor_is_read_and_its_pages_dropped() -> None:
    for spec in TINY_SPECS.values():
        checkpoint = DictCheckpoint(spec, tiny_tensors(spec))
        load(checkpoint)
        assert [name for name in checkpoint.tensor_names if checkpoint.tensor(name).num_drops == 0] == []


def test_progress_counts_up_to_the_total() -> None:
    calls: list[tuple[int, int]] = []
    load(DictCheckpoint(LLAMA, tiny_tensors(LLAMA)), lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_a_tied_head_is_the_embedding_itself_and_an_untied_one_is_not() -> None:
    tied = load(DictCheckpoint(LLAMA, tiny_tensors(LLAMA)))
    spec = TINY_SPECS["llama_untied"]
    untied = load(DictCheckpoint(spec, tiny_tensors(spec)))
    assert tied.head is tied.embedding
    assert untied.head is not untied.embedding


def test_layers_of_both_kinds_are_dealt_into_groups() -> None:
    spec = TINY_SPECS["gemma3_text"]
    model = load(DictCheckpoint(spec, tiny_tensors(spec)))
    assert [(group.kind, group.layers) for group in model.kv_groups] == [
        ("full", (2, 5)),
        ("sliding_window", (0, 1)),
        ("sliding_window", (3, 4)),
    ]
