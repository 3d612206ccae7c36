"""Executor: carries out plans on a device, wherever the device's process runs.

Guarantees of every executor: plans run in the order of submission, one after the other; each future gets exactly one
result or exception; waiting costs no CPU. None of the methods but `collective_rpc` and `shutdown` blocks.
Threads: `submit` and `shutdown` from one thread.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from octavo.proto.plan import StepPlan
from octavo.proto.result import StepResult


class Executor(Protocol):
    """Where steps are run."""

    max_concurrent_steps: int
    """Steps that may be submitted and not yet done."""

    def submit(self, plan: StepPlan) -> Future[StepResult]:
        """Queue a plan. The future carries the result, or whatever the step raised.

        Raises InvariantError when too many steps are in flight, EngineDeadError after shutdown.
        """
        ...

    def collective_rpc(self, name: str, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> list[Any]:
        """Call a public method on each worker, behind all plans submitted so far; one answer a worker.

        Raises whatever a worker raised, TimeoutError, InvariantError for a name that is not public.
        """
        ...

    def check_health(self) -> None:
        """Raises EngineDeadError when no further plan can be run."""
        ...

    def shutdown(self, timeout_s: float | None = None) -> None:
        """Let the running step end, refuse the queued ones (EngineDeadError), release everything. Idempotent.

        Raises TimeoutError when the running step takes longer.
        """
        ...
