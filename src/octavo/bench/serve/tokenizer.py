"""The tokenizer of the model under test, found by the name the server gives it.

Owns: where to look, what to say when there is none.   Does not own: tokenizers (octavo.loading).
Weights are not needed and never fetched.
"""

from __future__ import annotations

import re
from pathlib import Path

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading import ALIASES, Tokenizer, open_checkpoint, resolve_model
from octavo.loading.hf_tokenizer import load_hf_tokenizer

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_FILES = ["tokenizer*", "*.jinja", "config.json", "special_tokens_map.json", "added_tokens.json"]


def load_tokenizer(name: str) -> Tokenizer:
    """Of an alias, a file or folder, or a hub id (only the tokenizer is fetched). Raises ModelNotFoundError."""
    try:
        path = _find(name)
        if (path / "tokenizer.json").exists():
            return load_hf_tokenizer(path)
        checkpoint = open_checkpoint(path)
        try:
            return checkpoint.load_tokenizer()
        finally:
            checkpoint.close()
    except LoadError as error:
        remedy = "name one with --tokenizer, or send random token ids with --skip-tokenizer-init"
        raise ModelNotFoundError(f"no tokenizer for {name!r} ({error}); {remedy}") from error


def _find(name: str) -> Path:
    if name in ALIASES or Path(name).expanduser().exists() or not _HUB_ID.fullmatch(name):
        return resolve_model(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(f"the hub gave no files of it: {str(error).splitlines()[0]}") from error
