import contextlib
import http.client
import json
import signal
import socket
import threading
import time

import pytest
from fakes.live_server import LiveServer

OPTIONS = (
    "--kernel-backend=reference",
    "--max-model-len=512",
    "--num-gpu-blocks-override=128",
    "--served-model-name=tiny",
)
LONG = {"prompt": "a", "max_tokens": 400, "ignore_eos": True, "temperature": 0}


@pytest.fixture
def fresh(tiny_folder, tmp_path):
    """Start one with further options; it is ended with the test."""
    started = []

    def start(*options, wait=True):
        server = LiveServer(tiny_folder, (*OPTIONS, *options), {}, tmp_path)
        started.append(server)
        server.start(wait=wait)
        return server

    yield start
    for server in started:
        server.stop(signal.SIGKILL)


class Stream:
    """A streamed completion that is read in the background."""

    def __init__(self, server, **fields):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        body = json.dumps({**LONG, "stream": True, **fields})
        self.connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
        self.response = self.connection.getresponse()
        self.data = self.response.read(200)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        # The server may be killed on the way.
        with contextlib.suppress(http.client.HTTPException, OSError):
            self.data += self.response.read()

    def end(self):
        self.thread.join(30)
        self.response.close()
        self.connection.close()
        return self.data.decode()


class Background(threading.Thread):
    """A request whose server will be killed under it."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self._ask = ask

    def run(self):
        with contextlib.suppress(http.client.HTTPException, OSError):
            self._ask()


def live(server):
    return server.get("/load").json["server_load"]


def wait_until(condition, timeout_s=5.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_term_finishes_what_runs_refuses_what_is_new_and_exits_0(fresh):
    server = fresh()
    stream = Stream(server)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.get("/readyz").status == 503)
    refused = server.completion()
    assert (refused.status, refused.headers["connection"], refused.error["code"]) == (503, "close", "shutting_down")
    assert server.get("/livez").status == 200
    text = stream.end()
    assert text.endswith("data: [DONE]\n\n")
    assert '"finish_reason":"length"' in text
    assert server.process.wait(10) == 0


def test_what_is_not_finished_in_time_ends_with_an_error_in_its_stream(fresh):
    server = fresh("--shutdown-timeout=0.2")
    stream = Stream(server, n=8, temperature=1)
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    events = stream.end().rstrip().split("\n\n")
    assert server.process.wait(10) == 0
    assert time.monotonic() - started < 3
    assert events[-1] == "data: [DONE]"
    assert "error" in json.loads(events[-2][6:])


def test_a_second_signal_ends_at_once(fresh):
    server = fresh()
    stream = Stream(server, n=8, temperature=1)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.get("/readyz").status == 503)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 128 + signal.SIGTERM
    assert "[DONE]" not in stream.end()


def test_while_the_model_loads_clients_are_told_to_come_back(fresh):
    server = fresh(wait=False)
    deadline = time.monotonic() + 20
    statuses = []
    while not statuses or statuses[-1] != 200:
        assert time.monotonic() < deadline
        try:
            answer = server.completion(max_tokens=1)
        except OSError:
            time.sleep(0.02)
            continue
        statuses.append(answer.status)
        if answer.status == 503:
            assert answer.headers["retry-after"] == "2"
            assert server.get("/livez").status == 200
    assert set(statuses) <= {503, 200}
    assert "Application startup complete." in server.log
    lines = server.log.split("Application startup complete.")[0].splitlines()
    assert len([line for line in lines if "octavo.server.access" not in line]) <= 15


def test_a_port_that_is_taken_ends_the_start_with_its_flag(fresh, tiny_folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = LiveServer(tiny_folder, OPTIONS, {}, tmp_path)
        server.port = taken.getsockname()[1]
        server.start(wait=False)
        assert server.process.wait(10) == 2
    assert "--port" in server.log.splitlines()[-1]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_client_that_leaves_frees_its_request_within_a_second(fresh, is_streamed):
    server = fresh()
    with server.connection() as sock:
        body = json.dumps({**LONG, "n": 4, "temperature": 1, "stream": is_streamed}).encode()
        lines = ["POST /v1/completions HTTP/1.1", "Host: x", "Content-Type: application/json"]
        sock.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        wait_until(lambda: live(server) == 1)
        wait_until(lambda: server.metric("vllm:num_requests_running") > 0)
    wait_until(lambda: live(server) == 0, 1)
    wait_until(lambda: server.metric("vllm:num_requests_running") == 0)


def test_a_full_queue_is_said_at_once_with_a_time_to_come_back(fresh):
    server = fresh("--max-num-seqs=1", "--max-num-queued-reqs=1")
    running = Stream(server, n=8, temperature=1)  # one after the other
    waiting = Background(lambda: server.completion(max_tokens=1))
    waiting.start()
    wait_until(lambda: server.metric("vllm:num_requests_waiting") >= 8)
    answer = server.completion(prompt="x" * 100, max_tokens=1)
    assert (answer.status, answer.error["code"], answer.headers["retry-after"]) == (503, "queue_full", "1")
    assert answer.seconds < 0.5
    assert "max_num_queued_reqs" in answer.error["message"]
    answer = server.post("/v1/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1})
    assert (answer.status, answer.json["error"]["type"]) == (529, "overloaded_error")
    assert answer.headers["retry-after"] == "1"
    server.stop(signal.SIGKILL)
    running.end()
    waiting.join()


def test_a_request_that_takes_too_long_ends_with_an_error(fresh):
    server = fresh("--request-timeout-s=0.3")
    answer = server.post("/v1/completions", {**LONG, "n": 16, "temperature": 1})
    assert (answer.status, answer.error["code"]) == (504, "deadline_exceeded"), server.log
    assert answer.error["type"] == "timeout_error"
    assert answer.headers["x-should-retry"] == "false"
    assert answer.seconds < 3


def test_a_stream_whose_time_is_up_ends_with_that_error(fresh):
    answer = fresh("--request-timeout-s=0.3").post(
        "/v1/completions", {**LONG, "n": 16, "temperature": 1, "stream": True}
    )
    assert answer.status == 200
    assert answer.events[-2]["error"]["code"] == "deadline_exceeded"
    assert answer.events[-1] == "[DONE]"


def test_a_silent_stream_is_kept_alive_by_comments(fresh):
    server = fresh("--sse-keep-alive-interval=0.02", "--stream-interval=1000")
    answer = server.post("/v1/completions", {**LONG, "stream": True})
    assert b": keep-alive\n\n" in answer.body
    assert answer.events[-1] == "[DONE]"


def test_the_admin_socket_resets_the_cache_and_tells_about_the_server(fresh, tmp_path):
    path = tmp_path / "admin.sock"
    fresh(f"--admin-uds={path}")
    assert path.stat().st_mode & 0o077 == 0

    def ask(method, route):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
            sock.sendall(f"{method} {route} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: sock.recv(65536), b""))

    assert b" 200 " in ask("POST", "/reset_prefix_cache")
    assert b'"state":"healthy"' in ask("GET", "/server_info")
    assert b'"num_queued_requests":0' in ask("GET", "/load")
    assert b" 404 " in ask("POST", "/v1/completions")


def test_https_is_served_from_pem_files(fresh, tmp_path):
    ssl = pytest.importorskip("ssl")
    import shutil
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = fresh(f"--ssl-keyfile={key}", f"--ssl-certfile={certificate}", wait=False)
    context = ssl.create_default_context(cafile=str(certificate))
    deadline = time.monotonic() + 20
    status = 0
    while status != 200:
        assert time.monotonic() < deadline, server.log
        try:
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=5)
            with contextlib.closing(connection):
                connection.request("GET", "/readyz")
                with connection.getresponse() as response:
                    status = response.status
        except OSError:
            time.sleep(0.05)
