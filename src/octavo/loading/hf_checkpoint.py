"""A Hugging Face folder (config.json, safetensors, tokenizer.json) as a Checkpoint."""

from __future__ import annotations

from pathlib import Path

from octavo.base.errors import LoadError
from octavo.loading.checkpoint import Checkpoint
from octavo.loading.fields import Fields
from octavo.loading.hf_config import read_generation_defaults, read_spec
from octavo.loading.hf_tokenizer import load_hf_tokenizer, read_hf_chat_templates
from octavo.loading.json_file import read_json_object, read_optional_json_object
from octavo.loading.safetensors import SafetensorsFiles
from octavo.loading.stored_tensor import StoredTensor

_TEXT_PREFIXES = (("model.language_model.", "model."), ("language_model.", ""))
"""How multimodal checkpoints, newer and older, prefix the names of their text part."""
_OTHER_PARTS = ("vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector.")


def open_hf_folder(folder: Path) -> Checkpoint:
    """Raises LoadError."""
    config = Fields(read_json_object(folder / "config.json"), str(folder / "config.json"))
    generation_path = folder / "generation_config.json"
    generation = Fields(read_optional_json_object(generation_path), str(generation_path))
    spec = read_spec(config, generation)
    files = SafetensorsFiles(folder)
    try:
        tensors = _text_tensors(folder, files.tensors)
        if spec.tie_word_embeddings:
            # Tied by the configuration: a stored copy of the head is not the one the model was trained to use.
            tensors.pop("lm_head.weight", None)
        return Checkpoint(
            folder,
            spec,
            tensors,
            tokenizer_loader=lambda: load_hf_tokenizer(folder),
            closers=[files.close],
            chat_template=read_hf_chat_templates(folder).get("default"),
            generation_defaults=read_generation_defaults(generation),
        )
    except BaseException:
        files.close()
        raise


def _text_tensors(folder: Path, stored: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Tensors of the text part, under the names a text-only checkpoint has."""
    tensors: dict[str, StoredTensor] = {}
    for stored_name, tensor in stored.items():
        if stored_name.startswith(_OTHER_PARTS):
            continue
        name = stored_name
        for prefix, replacement in _TEXT_PREFIXES:
            if name.startswith(prefix):
                name = replacement + name.removeprefix(prefix)
                break
        if name in tensors:
            raise LoadError(f"{folder}: tensor {stored_name!r} appears twice under different spellings")
        tensors[name] = tensor
    return tensors
