"""How threads share the interpreter in processes that are ours.

Owns: how long one that computes keeps another waiting.   Does not own: processes of users (LLM), which are left alone.
"""

from __future__ import annotations

import sys
from typing import Final

SWITCH_INTERVAL_S: Final = 0.0005
"""A thread that asks for the interpreter's lock gets it after so long. CPython's 5 ms would be paid each time that a
step, or the loop of a server, comes back from native code while another thread computes in Python: 5 to 15 ms more for
a step, where this adds 1 to 2."""


def share_finely() -> None:
    """For the whole process, from now on. Costs nothing while one thread computes."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
