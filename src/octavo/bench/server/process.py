"""`octavo serve` as a child of a benchmark, on a free port of the loopback interface.

Owns: start, readiness, end; what it logged.   Does not own: what is asked of it, what it takes (usage.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from octavo.base.errors import OctavoError

START_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.01
LOG_LINES_SHOWN = 5


class ServerProcess:
    """One server. A context manager: leaving it ends the server by TERM, and by KILL when that takes too long.

    flags: those of `octavo serve`, its model included. Raises OctavoError when it does not become ready.
    """

    def __init__(self, flags: Sequence[str], *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.port = _free_port()
        self.started_s = 0.0
        """time.monotonic() when the process was made."""
        self.ready_s = 0.0
        """Seconds from there to the first 200 of /readyz."""
        self._command = [sys.executable, "-m", "octavo.cli.main", "serve", *flags, "--port", str(self.port)]
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="octavo-bench-")
        self.log_path = Path(self._folder.name) / "server.log"

    def __enter__(self) -> ServerProcess:
        with self.log_path.open("wb") as log:
            self.started_s = time.monotonic()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "only inside the context"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def last_log_lines(self, count: int = LOG_LINES_SHOWN) -> str:
        """The end of its log."""
        try:
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-count:])
        except OSError:
            return ""

    def stop(self) -> None:
        """End it, and drop its log."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._folder.cleanup()

    def _wait_ready(self) -> None:
        assert self._process is not None
        deadline_s = self.started_s + self._start_timeout_s
        while not _is_ready(self.port):
            if self._process.poll() is not None:
                raise OctavoError(f"the server ended with {self._process.returncode}:\n{self.last_log_lines()}")
            if time.monotonic() > deadline_s:
                raise OctavoError(
                    f"the server was not ready after {self._start_timeout_s:g} s:\n{self.last_log_lines()}"
                )
            time.sleep(POLL_S)
        self.ready_s = time.monotonic() - self.started_s


def _is_ready(port: int) -> bool:
    request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as sock:
            sock.sendall(request)
            return sock.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
