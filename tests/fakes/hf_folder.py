"""Tiny models on disk, as Hugging Face folders: config, safetensors, byte-level tokenizer, chat template.

write_hf_folder(tmp_path / "tiny", LLAMA)     ->  a path that every engine entry takes for `model`
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fakes.tiny_models import LLAMA, hf_config
from fakes.tiny_weights import tiny_tensors

from octavo.config.model_spec import ModelSpec

BOS, EOS, IM_START, IM_END = "<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = ("<|pad|>", BOS, EOS, IM_START, IM_END)
"""Ids 0 .. 4; LLAMA's spec has bos 1 and eos 2."""
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_MERGED = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic "
    "ne ea ra ce li ch ll be ma si om ur ca el ta la ns us wa ec lo"
)
"""Pairs that fill the vocabulary of 320."""


def write_hf_folder(path: Path, spec: ModelSpec = LLAMA, *, seed: int = 1) -> Path:
    """Write a loadable model of random weights and return `path`. Takes a few milliseconds."""
    path.mkdir(parents=True, exist_ok=True)
    _write_json(path / "config.json", hf_config(spec))
    _write_json(path / "generation_config.json", {"eos_token_id": list(spec.eos_token_ids)})
    _write_json(path / "tokenizer.json", byte_level_tokenizer(spec.vocab_size))
    _write_json(
        path / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS, "add_bos_token": True}
        | {"chat_template": CHAT_TEMPLATE},
    )
    write_safetensors(path / "model.safetensors", tiny_tensors(spec, seed))
    return path


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """A safetensors file of float32 tensors: header length, JSON header, the tensors one after the other."""
    header: dict[str, Any] = {}
    offset = 0
    for name, values in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [offset, offset + values.nbytes],
        }
        offset += values.nbytes
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, "<f4").tobytes())


def byte_level_tokenizer(vocab_size: int) -> dict[str, Any]:
    """A tokenizer.json: 5 special tokens, 256 bytes, then merged pairs of letters up to vocab_size (at most 320)."""
    vocab = {text: token_id for token_id, text in enumerate(SPECIAL_TOKENS)}
    for char in _byte_chars():
        vocab[char] = len(vocab)
    merges = []
    for pair in _MERGED.split()[: vocab_size - len(vocab)]:
        vocab[pair] = len(vocab)
        merges.append([pair[0], pair[1]])
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": text, "single_word": False, "lstrip": False, "rstrip": False}
            | {"normalized": False, "special": True}
            for token_id, text in enumerate(SPECIAL_TOKENS)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {BOS: {"id": BOS, "ids": [SPECIAL_TOKENS.index(BOS)], "tokens": [BOS]}},
        },
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
        | {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": merges},
    }


def _byte_chars() -> list[str]:
    """The printable stand-in of each byte 0 .. 255 in byte-level BPE. Source: GPT-2's encoder."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
