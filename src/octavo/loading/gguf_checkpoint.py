"""A GGUF file as a Checkpoint: names, row order and norm weights as Hugging Face has them."""

from __future__ import annotations

from pathlib import Path

from octavo.base.errors import LoadError
from octavo.config.model_spec import ModelSpec
from octavo.loading.checkpoint import Checkpoint
from octavo.loading.gguf import GgufFile, GgufTensorInfo, StringArray
from octavo.loading.gguf_names import ROPE_FACTORS, hf_name
from octavo.loading.gguf_spec import read_spec
from octavo.loading.gguf_tokenizer import load_gguf_tokenizer, read_chat_templates
from octavo.loading.stored_tensor import StoredTensor, TensorLayout


def open_gguf(path: Path) -> Checkpoint:
    """Raises LoadError."""
    file = GgufFile(path)
    try:
        spec = read_spec(file)
        tensors = _name_tensors(file, spec)
        _check_vocabulary(file, spec)
        return Checkpoint(
            path,
            spec,
            tensors,
            tokenizer_loader=lambda: load_gguf_tokenizer(file),
            closers=[file.close],
            chat_template=read_chat_templates(file).get("default"),
        )
    except BaseException:
        file.close()
        raise


def _name_tensors(file: GgufFile, spec: ModelSpec) -> dict[str, StoredTensor]:
    architecture = str(file.metadata["general.architecture"])
    tensors: dict[str, StoredTensor] = {}
    for info in file.tensors.values():
        if info.name == ROPE_FACTORS:
            continue
        name = hf_name(info.name, architecture)
        if name is None:
            raise LoadError(f"{file.path}: tensor {info.name!r} has no place in a {architecture} model")
        if name in tensors:
            raise LoadError(f"{file.path}: tensor {info.name!r} appears twice under different spellings")
        layout = _layout(file, info, name, spec)
        tensors[name] = StoredTensor(name, info.shape, info.storage, file.file, info.offset, layout)
    return tensors


def _layout(file: GgufFile, info: GgufTensorInfo, name: str, spec: ModelSpec) -> TensorLayout:
    if spec.model_type == "gemma3_text" and name.endswith("norm.weight"):
        return TensorLayout(add=-1.0)
    if spec.model_type != "llama" or (".attn_q." not in info.name and ".attn_k." not in info.name):
        return TensorLayout()
    if info.shape[0] % spec.head_dim:
        raise LoadError(
            f"{file.path}: tensor {info.name!r} has {info.shape[0]} rows, no multiple of the head size {spec.head_dim}"
        )
    return TensorLayout(interleaved_head_dim=spec.head_dim)


def _check_vocabulary(file: GgufFile, spec: ModelSpec) -> None:
    pieces = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(pieces, StringArray) and len(pieces) > spec.vocab_size:
        raise LoadError(
            f"{file.path}: key 'tokenizer.ggml.tokens' has {len(pieces)} pieces, tensor 'token_embd.weight' has "
            f"{spec.vocab_size} rows"
        )
