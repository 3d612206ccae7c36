"""The folder in which pulled models are kept.

<cache>/models/<alias>.gguf     complete and verified: files get here by rename only
<cache>/tmp/                    pulls under way, and what interrupted ones left behind
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_VARIABLE = "OCTAVO_HOME"


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model that is ready to use."""

    name: str
    path: Path
    num_bytes: int


def cache_dir() -> Path:
    """$OCTAVO_HOME, or ~/.cache/octavo. Not created."""
    home = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(home).expanduser() if home else Path.home() / ".cache" / "octavo"


def cached_path(alias: str, root: Path | None = None) -> Path:
    """Where the file of an alias is, or will be."""
    return (root or cache_dir()) / "models" / f"{alias}.gguf"


def list_cached(root: Path | None = None) -> list[CachedModel]:
    """All pulled models, by name."""
    paths = sorted(((root or cache_dir()) / "models").glob("*.gguf"))
    return [CachedModel(path.stem, path, path.stat().st_size) for path in paths]
