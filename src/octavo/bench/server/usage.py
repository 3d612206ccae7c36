"""What the processes of a server take: CPU time, memory, threads, descriptors, from /proc (Linux).

Owns: reading and adding up.   Does not own: starting servers (process.py), what is too much (the benchmarks).
A process that ends while it is read counts with zeros.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENGINE_MODULE, HELPER_MODULE = b"octavo.engine.process.main", b"octavo.engine.template.main"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPU_CLOCK = 2
"""CPUCLOCK_SCHED of Linux: time a process has run, in nanoseconds, threads that have ended included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Of one process, or of several added up."""

    cpu_s: float = 0.0
    rss_bytes: int = 0
    peak_rss_bytes: int = 0
    num_threads: int = 0
    num_fds: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            cpu_s=self.cpu_s + other.cpu_s,
            rss_bytes=self.rss_bytes + other.rss_bytes,
            peak_rss_bytes=self.peak_rss_bytes + other.peak_rss_bytes,
            num_threads=self.num_threads + other.num_threads,
            num_fds=self.num_fds + other.num_fds,
        )


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """Of a server: front ends and launcher; engine; processes in which front ends render templates."""

    front_end: Usage
    engine: Usage
    helpers: Usage = Usage()

    @property
    def without_engine(self) -> Usage:
        return self.front_end + self.helpers

    @property
    def total(self) -> Usage:
        return self.without_engine + self.engine


def read_server(pid: int) -> ServerUsage:
    """Of a server's process and all below it. Costs about 0.1 ms a process."""
    front_end, engine, helpers = Usage(), Usage(), Usage()
    for member in [pid, *descendants(pid)]:
        usage, words = read_process(member), _command_of(member)
        if ENGINE_MODULE in words:
            engine += usage
        elif HELPER_MODULE in words:
            helpers += usage
        else:
            front_end += usage
    return ServerUsage(front_end, engine, helpers)


def read_process(pid: int) -> Usage:
    """Of one process; zeros when it is not there."""
    try:
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        return Usage(
            cpu_s=time.clock_gettime((~pid << 3) | _CPU_CLOCK),
            rss_bytes=int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES,
            peak_rss_bytes=1024 * int(status.get("VmHWM", "0 kB").split()[0]),
            num_threads=int(status["Threads"]),
            num_fds=len(os.listdir(f"/proc/{pid}/fd")),
        )
    except (OSError, KeyError):
        return Usage()


def _command_of(pid: int) -> list[bytes]:
    """The words of its command line; none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def descendants(pid: int) -> Iterator[int]:
    """Processes below one, parents before their children."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))
