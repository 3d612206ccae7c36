"""How an AsyncLLM runs its engine and bounds its own work."""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.engine.process.spawned import SpawnedEngine
from octavo.fault.policy import RestartPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncOptions:
    """Beside the engine's configuration: what concerns the front end alone."""

    in_process: bool = False
    """The engine in a thread of this process: no isolation, no restart."""
    replay: bool = True
    """Streams survive their engine; False: they end with an error when it dies."""
    stall_timeout_s: float = 60.0
    """Work waits and no step has finished for so long: the engine is killed and restarted."""
    prepare_timeout_s: float = 10.0
    """A template and tokenizing may take so long, the wait for a thread included."""
    max_prepare_queue: int = 256
    """Prompts that may be in preparation or wait for it."""
    trust_request_chat_template: bool = False
    """Accept ChatOptions.chat_template; such a template is code of the caller's."""
    restart_policy: RestartPolicy = field(default_factory=RestartPolicy)
    """How often a dead engine is replaced, and how soon."""
    spawned_engine: SpawnedEngine | None = None
    """A process for the first engine that was started already, to save the time of its imports."""
    client_idx: int = 0
    """Tells the front ends of one engine apart."""
    launcher_fd: int | None = None
    """This process is one of several front ends: its end of the channel to the launcher (hub.py), which has the engine.
    """
