"""A model's name -> where its files are.

Owns: the order alias, path, hub id.   Does not own: fetching aliases (download.py), opening (opening.py).
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading.aliases import ALIASES, near_aliases
from octavo.loading.cache import cached_path

HUB_PATTERNS = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja"]
"""What is fetched from the hub: weights without code, configuration, tokenizer. Nothing that runs."""
HUB_IGNORED = ["*/*"]
"""Folders inside a repository hold other copies of the weights."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def resolve_model(
    name: str, *, download_dir: str | Path | None = None, revision: str | None = None, token: str | None = None
) -> Path:
    """A GGUF file or a folder: of a pulled alias, of a path, of a hub id ("owner/name", fetched when not cached).

    `download_dir`, `revision` and `token` are for hub ids. Raises ModelNotFoundError with what to do.
    """
    if name in ALIASES:
        path = cached_path(name)
        if path.exists():
            return path
        if not Path(name).exists():
            raise ModelNotFoundError(f"model {name!r} is not in the cache: run `octavo pull {name}`")
    path = Path(name).expanduser()
    if name and path.exists():
        return path
    if _HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
        return _fetch_from_hub(name, download_dir, revision, token)
    raise ModelNotFoundError(f"model {name!r}: no such file or folder, no known model{_suggestion(name)}")


def _suggestion(name: str) -> str:
    near = near_aliases(name)
    if near:
        return f"; did you mean {' or '.join(near)}? `octavo pull {near[0]}` fetches it"
    return f"; `octavo pull` fetches one of {', '.join(ALIASES)}"


def _fetch_from_hub(repo_id: str, download_dir: str | Path | None, revision: str | None, token: str | None) -> Path:
    """The local snapshot if it is complete, else the hub's. All files of one snapshot are of one revision."""
    from huggingface_hub import snapshot_download

    def snapshot(*, is_local: bool) -> Path:
        return Path(
            snapshot_download(
                repo_id,
                revision=revision,
                cache_dir=download_dir,
                token=token,
                allow_patterns=HUB_PATTERNS,
                ignore_patterns=HUB_IGNORED,
                local_files_only=is_local,
            )
        )

    cached: Path | None = None
    with contextlib.suppress(OSError, ValueError):  # the client's: it is not cached, the cache is damaged, a bad id
        cached = snapshot(is_local=True)
    if cached is not None and _is_complete(cached):
        return cached
    # Not in the local cache in any usable form: ask the hub, whose answer is the one to report.
    try:
        folder = snapshot(is_local=False)
    except Exception as error:
        # The client raises its own errors, and those of the HTTP library it happens to use.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelNotFoundError(
            f"model {repo_id!r}: no such path, not in the local cache, and the hub did not give it: {reason}"
        ) from error
    if not _is_complete(folder):
        raise LoadError(f"model {repo_id!r}: the repository has no config.json with safetensors at its top level")
    return folder


def _is_complete(folder: Path) -> bool:
    """config.json and every weight file that the index names."""
    from octavo.loading.safetensors import list_weight_files

    if not (folder / "config.json").exists():
        return False
    try:
        files = list_weight_files(folder)
    except LoadError:
        return False
    return all(file.exists() for file in files)
