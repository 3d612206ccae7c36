"""A path -> the Checkpoint there: tells the formats apart."""

from __future__ import annotations

from pathlib import Path

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading.checkpoint import Checkpoint
from octavo.loading.gguf import MAGIC
from octavo.loading.gguf_checkpoint import open_gguf
from octavo.loading.hf_checkpoint import open_hf_folder


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a GGUF file, or a Hugging Face folder with config.json and safetensors.

    Reads headers and metadata only. Raises LoadError naming file and tensor or key.
    """
    if path.is_dir():
        if (path / "config.json").exists():
            return open_hf_folder(path)
        candidates = sorted(path.glob("*.gguf"))
        if len(candidates) == 1:
            return open_gguf(candidates[0])
        found = (
            f"{len(candidates)} GGUF files, give the path of one" if candidates else "no config.json and no GGUF file"
        )
        raise LoadError(f"{path}: the folder has {found}")
    if not path.exists():
        raise ModelNotFoundError(f"{path}: no such file or folder")
    if path.suffix == ".safetensors":
        raise LoadError(f"{path}: give the folder with config.json, not the file with the weights")
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror or error})") from error
    if head != MAGIC:
        raise LoadError(f"{path}: neither a GGUF file nor a folder with config.json")
    return open_gguf(path)
