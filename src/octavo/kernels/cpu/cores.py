"""How many cores this process may use.

Owns: reading affinity and control group quotas.   Does not own: the threads (native/host/thread_pool.cpp).
"""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")


def usable_cores(cgroup_root: Path = _CGROUP_ROOT) -> int:
    """Cores by affinity, or the control group's CPU quota rounded down where that is less. At least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cpu_quota(cgroup_root)
    return max(1, cores if quota is None else min(cores, int(quota)))


def cpu_quota(cgroup_root: Path) -> float | None:
    """Cores that the control group grants, version 2 or 1; None: no limit, or none that can be read."""
    try:
        quota, period = (cgroup_root / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        folder = cgroup_root / "cpu"
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return int(quota) / int(period)
