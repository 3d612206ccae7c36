"""How our processes begin: `python -m octavo.engine.process.entry SIGNAL IGNORED MODULE [ARGUMENT ...]`.

Owns: what must hold before the first slow import: the signal at the parent's death, signals left to the parent.
Does not own: the module, which is run as `__main__`.
A process that is stopped, or gets Ctrl-C for the whole group, while it still imports is no exception from the rules.
"""

from __future__ import annotations

import ctypes
import runpy
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
GROUP_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Meant for all processes of a terminal or of a service."""


def command(module: str, *arguments: str, at_parents_death: int, ignored: Sequence[int] = GROUP_SIGNALS) -> list[str]:
    """The command line that runs this module with these rules. Source of the death signal: prctl(2)."""
    names = ",".join(str(int(number)) for number in ignored)
    return [sys.executable, "-m", __name__, str(int(at_parents_death)), names, module, *arguments]


def begin(at_parents_death: int, ignored: Sequence[int]) -> None:
    """Put the rules in force in this process."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, at_parents_death)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Begin, and become the module."""
    death, ignored, module, *arguments = sys.argv[1:]
    begin(int(death), [int(number) for number in ignored.split(",")])
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
