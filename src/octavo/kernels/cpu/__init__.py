"""Native CPU back end: the op table over `octavo._native`."""

from octavo.kernels.cpu.table import CpuOps

__all__ = ["CpuOps"]
