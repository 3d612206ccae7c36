import json

import numpy as np
import pytest
from fakes.hf_folder import write_hf_folder, write_safetensors
from fakes.tiny_models import LLAMA, TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.base.errors import LoadError
from octavo.loading import open_checkpoint


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_folder_is_opened_whole(tmp_path):
    folder = write_hf_folder(tmp_path / "tiny")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.spec == LLAMA
        for name, values in tiny_tensors(LLAMA, 1).items():
            assert np.array_equal(checkpoint.tensor(name).read_f32(), values)
        assert checkpoint.chat_template == checkpoint.load_tokenizer().chat_template is not None


def test_a_head_is_there_only_if_the_configuration_does_not_tie_it(tmp_path):
    untied = TINY_SPECS["llama_untied"]
    folder = write_hf_folder(tmp_path / "tiny", untied)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.has_tensor("lm_head.weight")
    change_config(folder, tie_word_embeddings=True)
    with open_checkpoint(folder) as checkpoint:
        assert not checkpoint.has_tensor("lm_head.weight")
        assert checkpoint.spec.tie_word_embeddings


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_the_text_part_of_a_multimodal_model_has_plain_names(tmp_path, prefix):
    folder = write_hf_folder(tmp_path / "tiny")
    tensors = {name.replace("model.", prefix, 1): values for name, values in tiny_tensors(LLAMA, 1).items()}
    tensors["vision_tower.patch.weight"] = np.zeros((2, 2), np.float32)
    write_safetensors(folder / "model.safetensors", tensors)
    with open_checkpoint(folder) as checkpoint:
        assert sorted(checkpoint.tensor_names) == sorted(tiny_tensors(LLAMA, 1))


def test_generation_defaults_are_read(tmp_path):
    folder = write_hf_folder(tmp_path / "tiny")
    (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.5, "eos_token_id": [2, 4]}))
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.generation_defaults == {"temperature": 0.5}
        assert checkpoint.spec.eos_token_ids == (2, 4)


def test_a_missing_tensor_is_named(tmp_path):
    checkpoint = open_checkpoint(write_hf_folder(tmp_path / "tiny"))
    with checkpoint, pytest.raises(LoadError, match=r"'model\.layers\.9\.x' is missing"):
        checkpoint.tensor("model.layers.9.x")


def test_code_in_the_folder_is_not_run(tmp_path):
    folder = write_hf_folder(tmp_path / "tiny")
    (folder / "modeling.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')")
    change_config(folder, auto_map={"AutoModelForCausalLM": "modeling.Model"})
    open_checkpoint(folder).close()
    change_config(folder, model_type="own")
    with pytest.raises(LoadError, match="never run"):
        open_checkpoint(folder)
    assert not (tmp_path / "marker").exists()


def test_the_identity_changes_with_the_table_of_tensors(tmp_path):
    def identity(number, change):
        folder = write_hf_folder(tmp_path / str(number) / "tiny")
        write_safetensors(folder / "model.safetensors", change(tiny_tensors(LLAMA, 1)))
        with open_checkpoint(folder) as checkpoint:
            return checkpoint.identity()

    changes = [
        lambda tensors: tensors,
        lambda tensors: {name: values for name, values in tensors.items() if name != "model.norm.weight"},
        lambda tensors: tensors | {"model.norm.weight": np.zeros((4, LLAMA.hidden_size // 4), np.float32)},
    ]
    identities = [identity(number, change) for number, change in enumerate(changes)]
    assert len(set(identities)) == 3
    assert identity(3, changes[0]) == identities[0]
