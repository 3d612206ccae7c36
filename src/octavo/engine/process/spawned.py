"""An engine process that was started and has not been told anything yet: it imports, and waits for its first order.

Owns: starting it, our end of its socket pair until somebody claims both.   Does not own: watching it (child.py).
Imports nothing slow, so that a program can start its engine first and import the rest of itself meanwhile.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from typing import Self

from octavo.engine.process.entry import command


class SpawnedEngine:
    """Use as a context manager where it may remain unclaimed: it is ended then."""

    def __init__(self) -> None:
        # A message is one packet; neither end is inherited by other processes unless it is passed on purpose.
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._is_claimed = False
        with theirs:
            fd = theirs.fileno()
            # At our death SIGCONT: a stopped engine then ends itself as one that runs does. SIGKILL would leave the
            # sockets' folder, and would hit the engine of a program whose thread that started it has ended.
            run = command("octavo.engine.process.main", str(fd), at_parents_death=signal.SIGCONT)
            self._process = subprocess.Popen(run, pass_fds=[fd], stdin=subprocess.DEVNULL)

    def claim(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """(the process, our end): the caller's from now on."""
        assert not self._is_claimed
        self._is_claimed = True
        return self._process, self._end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_claimed:
            self._end.close()
            self._process.kill()
            self._process.wait()
