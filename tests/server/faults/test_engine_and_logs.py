"""Clients that leave, sockets between processes, and what the log says."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from fakes.bad_requests import COMPLETIONS
from fakes.fault_suite import KEY, MIB, leave
from fakes.live_server import LiveServer, until


def test_f30_a_request_leaves_the_engine_with_its_client(suite):
    long = {"max_tokens": 450, "ignore_eos": True}
    with suite.case(), concurrent.futures.ThreadPoolExecutor(24) as pool:
        ways = [
            {"body": long},
            {"body": long | {"stream": True}, "after_bytes": 400},
            {"body": long | {"prompt": [7] * 400, "max_tokens": 100}, "after_s": 0.02},
            {"body": long | {"n": 8, "temperature": 1}, "after_s": 0.05},
            {"body": {"max_tokens": 1, "stream": True}, "after_bytes": 200},
        ]
        list(pool.map(lambda way: leave(suite.server, **way), ways * 4))
        started = time.monotonic()
        until(lambda: suite.server.get("/load").json["server_load"] <= 1, 5.0, "only the canary is served")
        assert time.monotonic() - started < 4.0


def test_f38_counters_agree_after_streams_were_closed(suite):
    def ended() -> float:
        return suite.server.metric("vllm:request_success_total")

    with suite.case():
        pass
    before, tokens = ended(), suite.server.metric("vllm:prompt_tokens_total")
    for _ in range(5):
        leave(suite.server, {"max_tokens": 450, "ignore_eos": True, "stream": True}, after_bytes=64)
    until(lambda: ended() == before + 5, 2.0, "five more ends")
    suite.check_idle()
    assert suite.server.metric("vllm:request_prompt_tokens_sum") >= suite.server.metric("vllm:prompt_tokens_total")
    assert suite.server.metric("vllm:prompt_tokens_total") > tokens


def unix_sockets(server: LiveServer) -> list[str]:
    """Names of the sockets that the server's processes have open."""
    inodes = set()
    for pid in server.pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(entry)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return sorted({row[7] for row in rows if len(row) > 7 and row[6] in inodes})


def test_s70_frames_that_are_no_messages_change_nothing(suite, tmp_path):
    zmq = pytest.importorskip("zmq")
    marker = tmp_path / "marker"
    evil = b"cposix\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."
    with suite.case():
        paths = [name for name in unix_sockets(suite.server) if not name.startswith("@")]
        assert paths
        context = zmq.Context()
        for path in paths:
            sock = context.socket(zmq.DEALER)
            sock.setsockopt(zmq.LINGER, 500)
            sock.connect(f"ipc://{path}")
            for frame in (os.urandom(1000), b"", b"\x81\xa4type", b"\x81\xa4type\xa4nope", b"\x91" * 10_000, evil):
                sock.send(frame)
                sock.send_multipart([b"", frame, frame])
            sock.send(b"\x00" * (100 * MIB))
            time.sleep(0.3)
            sock.close()
        context.term()
        assert not marker.exists()


def test_s71_only_the_http_port_listens(suite):
    with suite.case():
        tcp = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            inodes = {row[9]: row[1] for row in rows if row[3] == "0A"}
            for pid in suite.server.pids:
                for entry in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        tcp |= {inodes[i] for i in [os.readlink(entry)[8:-1]] if i in inodes}
        assert tcp == {f"0100007F:{suite.server.port:04X}"}
        for name in unix_sockets(suite.server):
            assert not name.startswith("@"), "a socket without a file has no permissions"
            assert os.stat(Path(name).parent).st_mode & 0o777 == 0o700


def test_s75_the_server_under_test_runs_without_asserts_where_it_should(suite, optimize):
    env = Path(f"/proc/{suite.server.pids[-1]}/environ").read_bytes()
    assert (b"PYTHONOPTIMIZE=1" in env) == bool(optimize)


def test_s80_prompts_stay_out_of_the_log_and_ids_within_their_line(suite):
    log_start = len(suite.server.log)
    with suite.case():
        evil = "secret words\r\nINFO forged\x1b[31m" + "x" * 100_000
        assert suite.server.completion(prompt=evil[:200]).status == 200
        assert suite.server.completion(prompt=evil).status == 400
        for name in ("a\nINFO forged", "a\x1b[2Jb", "", "x" * 1000):
            assert suite.server.completion(request_id=name).status == 400
    log = suite.server.log[log_start:]
    assert "secret words" not in log
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", log)


def test_s80_the_line_of_a_refused_request_has_its_id(suite):
    with suite.case():
        assert suite.server.post(COMPLETIONS, b"{bad", {"x-request-id": "an-id-of-mine"}).status == 400
    assert suite.server.log.count("request_id=an-id-of-mine ") == 1


def test_s80_prompts_that_are_logged_are_cut_and_escaped(guarded):
    log_start = len(guarded.log)
    prompt = "words in the log\r\nINFO forged\x1b[31m" + "x" * 300
    headers = {"authorization": f"Bearer {KEY}"}
    assert guarded.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 1}, headers).status == 200
    lines = [line for line in guarded.log[log_start:].splitlines() if "words in the log" in line]
    assert len(lines) == 1
    assert "\\r\\nINFO forged\\x1b[31m" in lines[0]
    assert len(lines[0]) < 2000
    assert "\nINFO forged" not in guarded.log
