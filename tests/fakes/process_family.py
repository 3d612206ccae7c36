"""The processes of a running server, by what they are, and what they leave behind."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from fakes.bad_requests import COMPLETIONS
from fakes.live_server import LiveServer, until

ENGINE = b"octavo.engine.process.main"
FRONT_END = b"octavo.server.front_end"
LONG = {"max_tokens": 400, "ignore_eos": True, "stream": True}


def pids_of(server: LiveServer, module: bytes) -> list[int]:
    """Those below the server's process that run this module; they have left the moment between fork and exec."""
    found = []
    for pid in server.pids[1:]:
        with contextlib.suppress(OSError):
            if module in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def has_begun(pid: int, number: int = signal.SIGTERM) -> bool:
    """It leaves signals for the group to its parent: entry.py has run."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
        return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)
    return False


def is_alive(pid: int) -> bool:
    """A process runs; a zombie does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def leftovers(folder: Path) -> list[str]:
    """What is in a server's temporary folder beside logs."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.endswith(".log")]


def shared_memory() -> set[str]:
    """Segments of ours that have a name."""
    return {name for name in os.listdir("/dev/shm") if "octavo" in name}


def open_streams(server: LiveServer, pool, num: int, **fields) -> list:
    """Streams that have begun; each future gives the whole answer."""
    begun = server.metric("vllm:time_to_first_token_seconds_count")
    bodies = [LONG | {"prompt": f"stream {i}", "temperature": 0} | fields for i in range(num)]
    futures = [pool.submit(server.post, COMPLETIONS, body, None, 60.0) for body in bodies]
    until(lambda: server.metric("vllm:time_to_first_token_seconds_count") >= begun + num, 10.0, "streams have begun")
    return futures
