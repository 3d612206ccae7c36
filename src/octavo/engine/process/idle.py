"""What an engine's process does in its first idle moment, so that no request waits for it later.

Owns: when that moment is.   Does not own: the work, which may hold the interpreter's lock for long.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

from octavo.base.errors import OctavoError
from octavo.base.log import get_logger
from octavo.base.memory import return_freed_memory

logger = get_logger(__name__)

IDLE_S: Final = 0.3
"""So long nothing runs and nothing waits."""


class GrammarCore(Protocol):
    """Of EngineCore, what is needed here; from any thread."""

    @property
    def has_work(self) -> bool: ...
    @property
    def num_steps_done(self) -> int: ...
    @property
    def is_prepared_for_grammars(self) -> bool: ...
    def prepare_for_grammars(self) -> None: ...


def prepare_when_idle(core: GrammarCore, *, idle_s: float = IDLE_S) -> threading.Thread:
    """Make the core's grammar back end in a thread once the engine is idle; a request that needs it before makes it."""
    thread = threading.Thread(target=_prepare, args=(core, idle_s), name="octavo-idle", daemon=True)
    thread.start()
    return thread


def _prepare(core: GrammarCore, idle_s: float) -> None:
    num_steps = -1
    while not core.is_prepared_for_grammars:
        if not core.has_work and core.num_steps_done == num_steps:
            break
        num_steps = core.num_steps_done
        time.sleep(idle_s)
    try:
        core.prepare_for_grammars()
        return_freed_memory()  # 30 to 130 MB: reading a tokenizer takes more than keeping it
    except OctavoError as error:
        logger.debug("grammars cannot be followed: %s", error)  # who asks for one is told
    except Exception:
        logger.exception("the back end for grammars could not be made")
