"""Facts about the machine: memory really available, cores this process may use, instruction sets.

Owns: reading /proc, control groups (v1 and v2) and CPU affinity.   Does not own: deciding anything from them.
Read once, before anything is loaded; a fact that cannot be read is left out of the minimum, never guessed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.base.errors import OctavoError
from octavo.config.schema import ISA_LEVELS, CpuIsa, KernelBackend

_UNLIMITED_BYTES = 2**60
"""Control groups v1 write "no limit" as a number near 2**63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a process may use here."""

    num_cores: int
    """Affinity and control group quota, at least 1."""
    memory_total_bytes: int
    """Of the machine, or the tightest control group limit if less."""
    memory_available_bytes: int
    """What can be allocated now without swapping or being killed; page cache counts as free."""
    isa_levels: tuple[CpuIsa, ...] = ("scalar",)
    """Ascending."""
    kernel_backends: tuple[KernelBackend, ...] = ("reference",)


def read_machine(
    *,
    kernel_backends: tuple[KernelBackend, ...] = ("reference",),
    isa_levels: tuple[CpuIsa, ...] | None = None,
    num_affinity_cores: int | None = None,
    root: Path = Path("/"),
) -> MachineFacts:
    """Read the facts. `root` stands for / and the other parameters replace what would be asked of the processor.

    Raises OctavoError when /proc/meminfo cannot be read.
    """
    total_bytes, available_bytes = _read_meminfo(root)
    for limit_bytes, used_bytes in _cgroup_memory(root):
        total_bytes = min(total_bytes, limit_bytes)
        available_bytes = min(available_bytes, max(0, limit_bytes - used_bytes))
    num_cores = num_affinity_cores or len(os.sched_getaffinity(0))
    for quota in _cgroup_cpu_quotas(root):
        num_cores = min(num_cores, max(1, int(quota)))
    return MachineFacts(
        num_cores=num_cores,
        memory_total_bytes=total_bytes,
        memory_available_bytes=available_bytes,
        isa_levels=detect_isa_levels() if isa_levels is None else isa_levels,
        kernel_backends=kernel_backends,
    )


def detect_isa_levels() -> tuple[CpuIsa, ...]:
    """Levels of the native kernels that this processor and kernel allow, ascending."""
    from octavo import _native

    runnable = _native.runnable_isa_levels()
    return tuple(level for level in ISA_LEVELS if level in runnable)


def _read_meminfo(root: Path) -> tuple[int, int]:
    path = root / "proc/meminfo"
    fields: dict[str, int] = {}
    for line in (_try_read(path) or "").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            fields[name] = int(words[0]) * 1024
    if "MemTotal" not in fields or "MemAvailable" not in fields:
        raise OctavoError(f"{path} does not say how much memory is available; Octavo needs Linux 3.14 or later")
    return fields["MemTotal"], fields["MemAvailable"]


def _cgroup_folders(root: Path, controller: str) -> Iterator[tuple[Path, int]]:
    """(folder, version) of this process's control group and all above it, innermost first."""
    base = root / "sys/fs/cgroup"
    for line in (_try_read(root / "proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        _, controllers, path = parts
        if not controllers:
            top, version = base, 2
        elif controller in controllers.split(","):
            top, version = base / controller, 1
        else:
            continue
        folder = top / path.lstrip("/")
        # Inside a container the path may name a folder of the host that is not mounted: the top stands for it.
        yield top, version
        while folder != top and top in folder.parents:
            yield folder, version
            folder = folder.parent


def _cgroup_memory(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, use) in bytes of each control group with a limit. Inactive file pages can be dropped: not in use."""
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }
    for folder, version in _cgroup_folders(root, "memory"):
        limit_name, used_name, inactive_name = names[version]
        limit_bytes = _try_read_int(folder / limit_name)
        used_bytes = _try_read_int(folder / used_name)
        if limit_bytes is None or used_bytes is None or limit_bytes >= _UNLIMITED_BYTES:
            continue
        for line in (_try_read(folder / "memory.stat") or "").splitlines():
            name, _, value = line.partition(" ")
            if name == inactive_name:
                used_bytes = max(0, used_bytes - int(value))
        yield limit_bytes, used_bytes


def _cgroup_cpu_quotas(root: Path) -> Iterator[float]:
    """Cores' worth of time that each control group grants."""
    for folder, version in _cgroup_folders(root, "cpu"):
        if version == 2:
            words = (_try_read(folder / "cpu.max") or "").split()
            if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
                yield int(words[0]) / int(words[1])
        else:
            quota_us = _try_read_int(folder / "cpu.cfs_quota_us")
            period_us = _try_read_int(folder / "cpu.cfs_period_us")
            if quota_us and period_us and quota_us > 0:
                yield quota_us / period_us


def _try_read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _try_read_int(path: Path) -> int | None:
    text = (_try_read(path) or "").strip()
    return int(text) if text.lstrip("-").isdigit() else None
