"""JSON files of a model folder, read with a size limit and turned into objects or one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from octavo.base.errors import LoadError

MAX_JSON_BYTES = 1 << 28
"""Above any tokenizer.json known (34 MB)."""


def read_text(path: Path) -> str:
    """The UTF-8 text. Raises LoadError."""
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise LoadError(f"{path}: {size} bytes, at most {MAX_JSON_BYTES} are read")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise LoadError(f"{path}: not UTF-8 ({error.reason})") from error


def parse_json_object(text: str | bytes, source: str) -> dict[str, Any]:
    """A JSON object without duplicate keys. Raises LoadError naming `source`."""
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, source))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{source}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise LoadError(f"{source}: must be a JSON object, not {type(value).__name__}")
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in the file. Raises LoadError."""
    return parse_json_object(read_text(path), str(path))


def read_optional_json_object(path: Path) -> dict[str, Any]:
    """The object in the file; empty when there is no such file. Raises LoadError."""
    return read_json_object(path) if path.exists() else {}


def _unique(pairs: list[tuple[str, Any]], source: str) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise LoadError(f"{source}: key {twice!r} appears twice")
    return result
