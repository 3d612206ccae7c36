"""Ctrl-C that arrives between steps, never inside one.

Python raises KeyboardInterrupt between any two bytecodes of the main thread: it could leave a scheduler half updated.
While a `DeferredInterrupt` is open the first Ctrl-C is only noted, and `check` raises it where the state is whole.
A second one is not deferred: it must always be possible to leave.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class DeferredInterrupt:
    """Context manager. Does nothing outside the main thread or when the program has its own SIGINT handler."""

    def __init__(self) -> None:
        self._is_pending = False
        self._is_installed = False

    def __enter__(self) -> DeferredInterrupt:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._is_installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_installed = False
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise the KeyboardInterrupt that was noted, if one was."""
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_pending:
            signal.default_int_handler(number, frame)
        self._is_pending = True
