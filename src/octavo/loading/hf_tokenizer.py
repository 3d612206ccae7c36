"""The tokenizer of a Hugging Face folder: tokenizer.json, and what the files beside it say about it.

Owns: these files.   Does not own: tokenizing (tokenizers package), templates (template.py).
Code that a folder brings along is never run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, processors

from octavo.base.errors import LoadError
from octavo.loading.fields import Fields
from octavo.loading.json_file import read_optional_json_object, read_text
from octavo.loading.tokenizer import PieceEncoding, Tokenizer, backend_errors

ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")
_BYTE_LEVEL_DECODERS = {"ByteLevel"}
_SENTENCEPIECE_DECODERS = {"ByteFallback", "Metaspace", "Replace"}


def load_hf_tokenizer(folder: Path) -> Tokenizer:
    """Raises LoadError naming the file, and the key where there is one."""
    config = read_optional_json_object(folder / "tokenizer_config.json")
    path = folder / "tokenizer.json"
    if not path.exists():
        reason = "; its own code (auto_map) is never run" if config.get("auto_map") else ""
        raise LoadError(f"{folder}: no tokenizer.json, and other forms of tokenizers are not read{reason}")
    with backend_errors(f"{path}:"):
        backend = tokenizers.Tokenizer.from_str(read_text(path))
        # Both are the caller's business; some files carry them along from training.
        backend.no_truncation()
        backend.no_padding()
        special = _special_tokens(folder, config)
        _add_missing_tokens(folder, config, backend)
        _honour_bos_flag(config, backend, special)
        encoding = _encoding(path, backend)
    return Tokenizer(
        backend, encoding=encoding, special_tokens=special, chat_templates=read_hf_chat_templates(folder, config)
    )


def read_hf_chat_templates(folder: Path, config: dict[str, Any] | None = None) -> dict[str, str]:
    """Templates by name: files first, then tokenizer_config.json. Raises LoadError."""
    if config is None:
        config = read_optional_json_object(folder / "tokenizer_config.json")
    templates = _config_templates(folder, config.get("chat_template"))
    in_json = read_optional_json_object(folder / "chat_template.json").get("chat_template")
    if in_json is not None:
        templates["default"] = Fields({"chat_template": in_json}, str(folder / "chat_template.json")).text(
            "chat_template"
        )
    if (folder / "chat_template.jinja").exists():
        templates["default"] = read_text(folder / "chat_template.jinja")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = read_text(path)
    return templates


def _config_templates(folder: Path, value: object) -> dict[str, str]:
    """A single template, or a list of named ones."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    source = f"{folder / 'tokenizer_config.json'}: chat_template"
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LoadError(f"{source} must be a string or a list of objects with name and template")
    named = [Fields(item, source) for item in value]
    return {item.text("name"): item.text("template") for item in named}


def _special_tokens(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """Texts of the tokens that have a role; a token is written as text or as an object with its content."""
    fallback = read_optional_json_object(folder / "special_tokens_map.json")
    special = {}
    for role in ROLES:
        value = config.get(role) or fallback.get(role)
        if isinstance(value, dict):
            value = value.get("content")
        if value is None:
            continue
        if not isinstance(value, str):
            raise LoadError(f"{folder / 'tokenizer_config.json'}: key {role!r} must be a string or hold 'content'")
        special[role] = value
    return special


def _add_missing_tokens(folder: Path, config: dict[str, Any], backend: tokenizers.Tokenizer) -> None:
    """Tokens that only tokenizer_config.json lists. Their ids must be the ones it gives."""
    source = f"{folder / 'tokenizer_config.json'}: added_tokens_decoder"
    listed = config.get("added_tokens_decoder") or {}
    if not isinstance(listed, dict) or not all(key.isdecimal() for key in listed):
        raise LoadError(f"{source} must be an object from ids to tokens")
    known = backend.get_added_tokens_decoder()
    for idx, value in sorted((int(key), value) for key, value in listed.items()):
        if idx in known:
            continue
        if not isinstance(value, dict):
            raise LoadError(f"{source}: token {idx} must be an object")
        fields = Fields(value, f"{source}: token {idx}")
        content = fields.text("content")
        flags = {name: fields.flag(name, False) for name in ("single_word", "lstrip", "rstrip", "normalized")}
        backend.add_tokens([AddedToken(content, special=fields.flag("special", False), **flags)])
        if backend.token_to_id(content) != idx:
            raise LoadError(f"{source}: token {content!r} got id {backend.token_to_id(content)}, not {idx}")


def _honour_bos_flag(config: dict[str, Any], backend: tokenizers.Tokenizer, special: dict[str, str]) -> None:
    """An explicit add_bos_token or add_eos_token overrules what tokenizer.json does."""
    fields = Fields(config, "tokenizer_config.json")
    added = backend.encode("", add_special_tokens=True).ids
    present, wanted = {}, {}
    for name in ("bos", "eos"):
        idx = backend.token_to_id(special[f"{name}_token"]) if f"{name}_token" in special else None
        present[name] = idx is not None and idx in added
        wanted[name] = fields.flag(f"add_{name}_token", present[name]) and idx is not None
    if present == wanted:
        return
    parts = [special["bos_token"]] * wanted["bos"] + ["$A"] + [special["eos_token"]] * wanted["eos"]
    tokens = [(text, backend.token_to_id(text)) for text in dict.fromkeys(parts) if text != "$A"]
    backend.post_processor = processors.TemplateProcessing(single=parts, special_tokens=tokens)


def _encoding(path: Path, backend: tokenizers.Tokenizer) -> PieceEncoding:
    """Told by the decoder, which is the part that turns pieces back into text."""
    state = json.loads(backend.decoder.__getstate__()) if backend.decoder is not None else {}
    steps = {step.get("type") for step in [state, *state.get("decoders", [])]}
    if steps & _BYTE_LEVEL_DECODERS:
        return PieceEncoding.BYTE_LEVEL
    if steps & _SENTENCEPIECE_DECODERS:
        return PieceEncoding.SENTENCEPIECE
    raise LoadError(f"{path}: decoder {state.get('type')!r} is not supported (supported: byte-level and SentencePiece)")
