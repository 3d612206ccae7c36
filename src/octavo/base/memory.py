"""Memory of this process as the system sees it.   Owns: giving back what was freed.   Does not own: budgets."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 1 << 20
KEPT_BYTES: Final = 4 << 20


def return_freed_memory() -> None:
    """Give back to the system what large work took and freed again. Cost: milliseconds, without the interpreter's lock.

    Source: malloc_trim(3).
    """
    with contextlib.suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def return_large_blocks_at_once() -> None:
    """From now on a block of LARGE_BYTES goes back to the system when it is freed, and so does a heap's free end beyond
    KEPT_BYTES.

    For processes that take large texts now and then. glibc's own bounds rise with the largest block that was ever
    freed, up to 32 and 64 MiB: a server that once had a body of 16 MiB would keep several times that. Not where large
    arrays come and go in every step: their pages would be made anew each time. Source: mallopt(3).
    """
    with contextlib.suppress(AttributeError):  # only glibc has it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
