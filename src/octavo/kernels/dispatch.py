"""Which back end serves: the one place that knows them all by name.

Owns: the names of the back ends.   Does not own: how `auto` is resolved (config) or what a back end can do.
"""

from __future__ import annotations

from typing import Literal

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.kernels.ops import OpTable

Backend = Literal["reference", "cpu"]


def available_backends() -> tuple[Backend, ...]:
    """The back ends there are: `make_ops` takes these and no others. A build always has both."""
    return ("reference", "cpu")


def make_ops(
    backend: Backend,
    dtype: Literal["float32", "bfloat16"],
    *,
    num_threads: int | None = None,
    isa: str = "auto",
) -> OpTable:
    """Build the op table of a back end. Imports it only now: the reference needs no native kernels.

    num_threads: threads of the native pool, None for one a core; `reference` has no pool of its own (its matrix
    products follow OPENBLAS_NUM_THREADS). isa: level of the native kernels, "auto" for the best that the processor
    runs; `reference` has none. Raises ConfigError for an unknown back end, ValueError for a level that cannot run here.
    """
    if backend == "reference":
        from octavo.kernels.reference import ReferenceOps

        return ReferenceOps(dtype)
    if backend == "cpu":
        from octavo.kernels.cpu import CpuOps

        return CpuOps(dtype, num_threads=num_threads, isa=isa)
    raise ConfigError([ConfigProblem("kernel_backend", backend, "use reference or cpu")])
