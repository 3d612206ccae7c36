"""A private folder for the sockets of one program, gone when the program is.

Owns: its name, its mode, its removal, and the removal of those that dead programs left behind.
The name carries the owner's process id and start time, so that a reused id is not taken for the owner.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from octavo.base.errors import OctavoError

MAX_PATH_BYTES = 100
"""A Unix socket's path has at most 107 bytes."""

_NAME = re.compile(r"octavo-(\d+)-(\d+)-\w+")


class RuntimeDir:
    """The folder. `remove` it at the end; calling again does nothing."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        remove_stale(parent)
        pid = os.getpid()
        # mkdtemp makes it with mode 0700, whatever the umask.
        self.path = Path(tempfile.mkdtemp(prefix=f"octavo-{pid}-{_start_time(pid)}-", dir=parent))
        if len(os.fsencode(self.path)) > MAX_PATH_BYTES - 8:
            self.remove()
            raise OctavoError(f"{parent} is too long a path for sockets: set TMPDIR to a shorter one")

    def socket_address(self, name: str) -> str:
        """A ZeroMQ address inside; name: a few characters."""
        return f"ipc://{self.path / name}"

    def remove_socket(self, name: str) -> None:
        """What a dead process left of it."""
        (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """With everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def remove_stale(parent: Path) -> int:
    """Remove our folders whose programs are dead; returns how many. Those of other users are left alone."""
    num_removed = 0
    for entry in os.scandir(parent):
        match = _NAME.fullmatch(entry.name)
        if match is None or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            is_ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
        except FileNotFoundError:
            continue
        if is_ours and _start_time(int(match[1])) != int(match[2]):
            shutil.rmtree(entry.path, ignore_errors=True)
            num_removed += 1
    return num_removed


def _start_time(pid: int) -> int | None:
    """When a process was started, in ticks since boot; None: there is none. Source: proc(5), /proc/pid/stat."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[19])
