"""The limits that a helper process puts on itself: memory, processor time for each job, no files, no processes.

Owns: the limits.   Does not own: the deadline of a job (its front end kills the process).
Who reaches one is ended by the kernel, and with it only the job. Source: setrlimit(2).
"""

from __future__ import annotations

import os
import resource
from pathlib import Path


def confine(*, memory_bytes: int) -> None:
    """For the whole life of the process. memory_bytes: of address space beyond what it has now."""
    num_pages = int(Path("/proc/self/statm").read_text().split()[0])
    most_bytes = num_pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
        resource.setrlimit(kind, (0, 0))
    num_open = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (num_open, num_open))


def allow_cpu(seconds: int) -> None:
    """From here on so much more processor time, up to a second more."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit_s = int(usage.ru_utime + usage.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
