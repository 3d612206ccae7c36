"""A real `octavo serve` in a process of its own, and everything a test wants to see of it from outside.

Nothing of the package is imported here: what is tested is what runs behind the socket.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_TIMEOUT_S = 60.0


@dataclass
class Answer:
    """An HTTP answer, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error object; fails where the body has not the shape of the contract."""
        error = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert isinstance(error["message"], str)
        assert error["message"]
        return error

    @property
    def events(self) -> list[Any]:
        """The events of a stream, [DONE] as a string."""
        found = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [item if item == "[DONE]" else json.loads(item) for item in found]

    @property
    def text(self) -> str:
        """Text of the first choice, streamed or not."""
        events = self.events if "event-stream" in self.headers.get("content-type", "") else [self.json]
        return "".join(
            choice.get("text") or choice.get("delta", {}).get("content") or ""
            for event in events
            if event != "[DONE]"
            for choice in event.get("choices", ())
            if choice["index"] == 0
        )


@dataclass
class LiveServer:
    """One server. `start` returns when it is ready; leave the `with` to end it by TERM."""

    model: Path
    options: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    """Where its log and its temporary files go."""

    def __post_init__(self) -> None:
        self.port = free_port()
        self.log_path = self.folder / f"server-{self.port}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LiveServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, wait: bool = True) -> None:
        """Launch; with `wait` until it is ready."""
        command = [sys.executable, "-m", "octavo.cli.main", "serve", str(self.model), "--port", str(self.port)]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until /readyz says 200."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get("/readyz").status == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(f"the server was not ready within {timeout_s} s:\n{self.log}")

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 20.0) -> int:
        """Send a signal and wait for the end. Returns the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise
        return self.process.returncode

    # ---- asking -----------------------------------------------------------------------------------------------------

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, None, headers)

    def post(
        self, path: str, body: object, headers: Mapping[str, str] | None = None, timeout_s: float = 30.0
    ) -> Answer:
        """`body`: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, data, {"content-type": "application/json", **(headers or {})}, timeout_s)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> Answer:
        started = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            # A refusal may come while the body is still being sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            data = response.read()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, fields, data, time.monotonic() - started)
        finally:
            connection.close()

    def completion(self, **fields: Any) -> Answer:
        """POST /v1/completions; greedy, and `prompt` is "hi" unless said otherwise."""
        return self.post("/v1/completions", {"prompt": "hi", "max_tokens": 4, "temperature": 0} | fields)

    @contextlib.contextmanager
    def connection(self, timeout_s: float = 10.0) -> Iterator[socket.socket]:
        """A bare connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as sock:
            yield sock

    def raw(self, data: bytes, timeout_s: float = 10.0, *, half_close: bool = False) -> bytes:
        """Send bytes, read until the server closes or is silent for a while."""
        with self.connection(timeout_s) as sock:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(data)
            if half_close:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def metric(self, name: str) -> float:
        """Sum of the samples of one name."""
        lines = self.get("/metrics").body.decode().splitlines()
        found = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        assert found, f"/metrics has no {name}"
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    # ---- looking ----------------------------------------------------------------------------------------------------

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def pids(self) -> list[int]:
        """The server's process and all below it."""
        return [self.pid, *descendants(self.pid)]

    @property
    def rss_bytes(self) -> int:
        """Memory of all its processes."""
        return sum(rss_bytes(pid) for pid in self.pids)


class Canary:
    """A greedy stream that runs over and over beside a test; each must have the text that it has alone."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.wrong: list[str] = []
        self.longest_s = 0.0

    def sing(self) -> str:
        answer = self._server.completion(prompt="a canary sings", max_tokens=24, ignore_eos=True, stream=True)
        self.longest_s = max(self.longest_s, answer.seconds)
        return answer.text if answer.status == 200 else f"status {answer.status}: {answer.body[:200]!r}"

    @contextlib.contextmanager
    def singing(self, expected: str) -> Iterator[None]:
        self._expected = expected
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                text = self.sing()
            except Exception as error:
                text = repr(error)
            if text != self._expected:
                self.wrong.append(text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def read_all(sock: socket.socket) -> bytes:
    """Until the end, or nothing more within the socket's timeout."""
    parts = []
    with contextlib.suppress(OSError):
        while part := sock.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def descendants(pid: int) -> list[int]:
    """Processes below one, from /proc."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def rss_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def until(condition: Any, timeout_s: float, what: str) -> None:
    """Wait for a condition, or fail."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
