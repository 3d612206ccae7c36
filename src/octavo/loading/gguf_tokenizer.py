"""The tokenizer inside a GGUF file, rebuilt from its metadata.

Owns: the keys `tokenizer.*`.   Does not own: cutting rules (pre_tokenizers.py), merge rebuilding (spm_merges.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from octavo.loading.fields import Fields
from octavo.loading.gguf import GgufFile, StringArray
from octavo.loading.pre_tokenizers import BPE_RULES
from octavo.loading.spm_merges import rebuild_merges
from octavo.loading.tokenizer import PieceEncoding, Tokenizer, backend_errors

_BLANK = "\u2581"


class PieceKind(IntEnum):
    """`tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def load_gguf_tokenizer(file: GgufFile) -> Tokenizer:
    """Raises LoadError naming the key at fault."""
    fields = Fields(file.metadata, str(file.path))
    model = fields.text("tokenizer.ggml.model")
    if model not in ("gpt2", "llama"):
        raise fields.error("tokenizer.ggml.model", f"= {model!r} is not supported (supported: gpt2, llama)")
    pieces = _strings(fields, "tokenizer.ggml.tokens")
    kinds = _kinds(fields, len(pieces))
    with backend_errors(f"{file.path}: keys 'tokenizer.ggml.*':"):
        if model == "gpt2":
            backend, adds_bos = _byte_level_backend(fields, pieces)
            encoding = PieceEncoding.BYTE_LEVEL
        else:
            pieces = [_with_blanks(piece, kind) for piece, kind in zip(pieces, kinds, strict=True)]
            backend, adds_bos = _sentencepiece_backend(fields, pieces, kinds), True
            encoding = PieceEncoding.SENTENCEPIECE
        _add_tokens(fields, backend, pieces, kinds)
        special = _special_tokens(fields, pieces)
        _set_processor(fields, backend, special, adds_bos)
    return Tokenizer(backend, encoding=encoding, special_tokens=special, chat_templates=read_chat_templates(file))


def read_chat_templates(file: GgufFile) -> dict[str, str]:
    """Templates by name; empty when the file has none."""
    fields = Fields(file.metadata, str(file.path))
    prefix = "tokenizer.chat_template"
    templates = {}
    for key in file.metadata:
        if key == prefix:
            templates["default"] = fields.text(key)
        elif key.startswith(f"{prefix}."):
            templates[key[len(prefix) + 1 :]] = fields.text(key)
    return templates


def _strings(fields: Fields, key: str) -> list[str]:
    value = fields.raw(key)
    if not isinstance(value, StringArray):
        raise fields.error(key, "is missing" if value is None else "must be an array of strings")
    return value.read()


def _kinds(fields: Fields, num_pieces: int) -> list[int]:
    key = "tokenizer.ggml.token_type"
    value = fields.raw(key)
    if value is None:
        return [PieceKind.NORMAL] * num_pieces
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or len(value) != num_pieces:
        raise fields.error(key, f"must be an array of {num_pieces} integers, one a token")
    kinds: list[int] = value.tolist()
    return kinds


def _byte_level_backend(fields: Fields, pieces: Sequence[str]) -> tuple[tokenizers.Tokenizer, bool]:
    """(tokenizer, whether it adds bos when the file does not say)."""
    key = "tokenizer.ggml.pre"
    pre = fields.text(key)
    rules = BPE_RULES.get(pre)
    if rules is None:
        raise fields.error(key, f"= {pre!r} is not a known pre-tokenizer (known: {', '.join(BPE_RULES)})")
    merges: list[tuple[str, str]] = []
    for index, merge in enumerate(_strings(fields, "tokenizer.ggml.merges")):
        # A piece may itself begin with the separator's character only in theory: blanks are written as U+0120.
        left, separator, right = merge.partition(" ")
        if not (left and separator and right):
            raise fields.error("tokenizer.ggml.merges", f"entry {index} ({merge!r}) is not two pieces")
        merges.append((left, right))
    vocab = dict(zip(pieces, range(len(pieces)), strict=True))
    if len(vocab) != len(pieces):
        raise fields.error("tokenizer.ggml.tokens", "holds the same piece twice")
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=rules.ignore_merges))
    normalizer = rules.normalizer()
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = rules.pre_tokenizer()
    backend.decoder = decoders.ByteLevel()
    return backend, rules.adds_bos


def _with_blanks(piece: str, kind: int) -> str:
    """User-defined pieces are stored with plain blanks, but matched after blanks have become U+2581."""
    return piece.replace(" ", _BLANK) if kind == PieceKind.USER_DEFINED else piece


def _sentencepiece_backend(fields: Fields, pieces: Sequence[str], kinds: Sequence[int]) -> tokenizers.Tokenizer:
    key = "tokenizer.ggml.scores"
    scores = fields.raw(key)
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f" or len(scores) != len(pieces):
        raise fields.error(key, f"must be an array of {len(pieces)} numbers, one a token")
    if not np.isfinite(scores).all():
        raise fields.error(key, "holds a score that is not finite")
    vocab: dict[str, int] = {}
    for idx, piece in enumerate(pieces):
        vocab.setdefault(piece, idx)
    producible = [
        (piece, 0.0 if kind == PieceKind.USER_DEFINED else score)
        for piece, kind, score in zip(pieces, kinds, scores.tolist(), strict=True)
        if kind in (PieceKind.NORMAL, PieceKind.USER_DEFINED)
    ]
    unknown_id = fields.optional_integer("tokenizer.ggml.unknown_token_id", low=0, high=len(pieces) - 1) or 0
    backend = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocab,
            merges=rebuild_merges(vocab, producible),
            unk_token=pieces[unknown_id],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    adds_blank = fields.flag("tokenizer.ggml.add_space_prefix", True)
    to_blank = normalizers.Replace(" ", _BLANK)
    strip: list[decoders.Decoder] = []
    if adds_blank:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend(_BLANK), to_blank])
        strip.append(decoders.Strip(" ", 1, 0))
    else:
        backend.normalizer = to_blank
        backend.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    backend.decoder = decoders.Sequence(
        [decoders.Replace(_BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return backend


def _add_tokens(fields: Fields, backend: tokenizers.Tokenizer, pieces: Sequence[str], kinds: Sequence[int]) -> None:
    """Control, unknown and user-defined pieces are found in the text as they are, before anything else."""
    special_kinds = (PieceKind.CONTROL, PieceKind.UNKNOWN)
    added = [
        AddedToken(pieces[idx], special=kind in special_kinds, normalized=False)
        for idx, kind in enumerate(kinds)
        if kind in (*special_kinds, PieceKind.USER_DEFINED)
    ]
    if any(not token.content for token in added):
        raise fields.error("tokenizer.ggml.tokens", "holds a control token without a text")
    backend.add_tokens(added)


def _special_tokens(fields: Fields, pieces: Sequence[str]) -> dict[str, str]:
    """Texts of the tokens that have a role."""
    roles = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    special = {}
    for name, role in roles.items():
        idx = fields.optional_integer(f"tokenizer.ggml.{role}_token_id", low=0, high=len(pieces) - 1)
        if idx is not None:
            special[name] = pieces[idx]
    return special


def _set_processor(
    fields: Fields, backend: tokenizers.Tokenizer, special: dict[str, str], adds_bos_by_default: bool
) -> None:
    parts = ["$A"]
    tokens = []
    for name, default in (("bos", adds_bos_by_default), ("eos", False)):
        text = special.get(f"{name}_token")
        if text is None or not fields.flag(f"tokenizer.ggml.add_{name}_token", default):
            continue
        parts = [text, *parts] if name == "bos" else [*parts, text]
        tokens.append((text, fields.integer(f"tokenizer.ggml.{name}_token_id", low=0)))
    if tokens:
        backend.post_processor = processors.TemplateProcessing(single=parts, special_tokens=tokens)
