"""What the tests of fault cases share: the server's baseline, the check after each case, ways to leave."""

from __future__ import annotations

import contextlib
import json
import re
import time
from pathlib import Path

from fakes.bad_requests import COMPLETIONS
from fakes.live_server import Answer, Canary, LiveServer, rss_bytes, until

V, L = 320, 512
MIB = 1 << 20
KEY = "sk-" + "k" * 40
GROWTH_BYTES = {"front end": 24 * MIB, "engine": 24 * MIB, "grammars": 32 * MIB}
"""What a process may have more than at first, in whatever order cases come, beside what it says that it keeps.

Front end: 7 to 10 after all cases, code and patterns that are loaded when they are first used; large bodies go back at
once (base/memory.py).   Engine: compiled grammars are kept on purpose and up to a bound, so what the engine says of
them does not count; 7 remain, holes between grammars that came and went.   Grammars: 20 after the largest check, of
what its library took and its allocator keeps. A leak adds to its process with every case, and these hold for all
together.
"""
SMALL = ("--kernel-backend", "reference", "--max-model-len", str(L), "--num-threads", "1", "--max-num-seqs", "8")
GUARDED = ("--api-key", KEY, "--trust-request-chat-template", "--enable-log-requests", "--read-timeout-s", "1",
           "--keep-alive-timeout-s", "1")  # fmt: skip
LEAKS = re.compile(r"0x[0-9a-f]{6,}|Traceback|File \"|/usr/|/tmp/|/home/|\.py\b|<[a-z_.]+ object|octavo\.[a-z]+\.")


class Suite:
    """A server, its baseline, and the check after each case."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.song = Canary(server).sing()
        assert not self.song.startswith("status"), self.song
        server.post(COMPLETIONS, b"[" * MIB)
        # From its first grammar on a server has a process for grammars.
        assert server.completion(structured_outputs={"choice": ["a"]}, max_tokens=1).status == 200
        self._pids = server.pids
        self._memory = self._read_memory()

    @contextlib.contextmanager
    def case(self):
        """Run a case beside a canary, then look whether anything is left of it."""
        log_start = len(self.server.log)
        canary = Canary(self.server)
        with canary.singing(self.song):
            yield canary
        assert canary.wrong == []
        self.check_idle()
        assert self.server.pids == self._pids
        assert self.server.get("/readyz").status == 200
        assert Canary(self.server).sing() == self.song
        self.check_memory()
        log = self.server.log[log_start:]
        assert "Traceback" not in log
        assert [line for line in log.splitlines() if not re.match(r"(INFO|WARNING|ERROR) |    ", line)] == []

    def _read_memory(self) -> dict[str, int]:
        """Bytes by process, without the grammars that are kept."""
        memory = {role_of(pid): rss_bytes(pid) for pid in self._pids}
        memory["engine"] -= int(self.server.metric("octavo_grammar_cache_bytes"))
        return memory

    def check_memory(self) -> None:
        """No process has more than it may have by now."""
        grown = {role: now - self._memory[role] for role, now in self._read_memory().items()}
        over = {role: f"{size / MIB:.1f} MiB" for role, size in grown.items() if size > GROWTH_BYTES[role]}
        assert not over, f"more memory than at first, beside what is kept on purpose: {over}"

    def check_idle(self) -> None:
        """Nothing runs, nothing waits, every block is free."""
        names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
        until(lambda: all(self.server.metric(name) == 0 for name in names), 5.0, "idle again")


def role_of(pid: int) -> str:
    """Which process of a server this is."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return "grammars" if b"grammar_check" in command else "engine" if b"process.main" in command else "front end"


def check_refusal(answer: Answer, param: str | None) -> None:
    """The body has the contract's shape, names the field, and says nothing of our insides."""
    error = answer.error
    assert error["type"] == "invalid_request_error" or answer.status in (401, 404, 413, 415), error
    if param is not None:
        assert error["param"] is not None, error
        assert error["param"].split("[")[0] == param, error
    assert not LEAKS.search(answer.body.decode()), error


def request_bytes(body: dict, path: str = COMPLETIONS, headers: str = "") -> bytes:
    data = json.dumps({"prompt": "hi", "temperature": 0} | body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return head.encode() + headers.encode() + b"\r\n" + data


def leave(server: LiveServer, body: dict, *, after_bytes: int = 0, after_s: float = 0.0) -> None:
    """Send a request and go away once so much of the answer has come."""
    with server.connection(30.0) as sock:
        sock.sendall(request_bytes(body))
        got = 0
        while got < after_bytes and (part := sock.recv(64)):
            got += len(part)
        time.sleep(after_s)
