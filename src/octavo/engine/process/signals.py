"""Signals that mean something to an engine process."""

from __future__ import annotations

import signal

STACK_SIGNAL = signal.SIGUSR1
"""Write the stacks of all threads to stderr and go on."""
