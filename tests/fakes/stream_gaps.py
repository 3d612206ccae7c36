"""A stream that is read without end, and the longest time in which none of its tokens came."""

from __future__ import annotations

import http.client
import json
import threading
import time
from types import TracebackType

from fakes.live_server import LiveServer


class StreamGaps:
    """Reads one stream after the other while the `with` lasts."""

    def __init__(self, server: LiveServer, max_tokens: int) -> None:
        self._server = server
        self._body = json.dumps({"prompt": "on and on", "max_tokens": max_tokens, "ignore_eos": True, "stream": True})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.longest_s = 0.0
        """Between two tokens, or a stream's request and its first."""
        self.num_tokens = 0
        self.error: Exception | None = None

    def __enter__(self) -> StreamGaps:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._read_stream()
        except Exception as error:
            self.error = error

    def _read_stream(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60)
        try:
            last_s = time.monotonic()
            connection.request("POST", "/v1/completions", self._body, {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            while not self._stop.is_set() and (line := response.readline()):
                if line.startswith(b"data: {"):
                    now_s = time.monotonic()
                    self.longest_s = max(self.longest_s, now_s - last_s)
                    self.num_tokens += 1
                    last_s = now_s
        finally:
            connection.close()
