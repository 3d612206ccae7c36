"""Processes that die, start badly, end in order, or are asked for too much."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import time

import pytest
from fakes.fault_suite import MIB, SMALL, request_bytes
from fakes.live_server import LiveServer, read_all, until
from fakes.process_family import is_alive, leftovers, open_streams


@pytest.fixture
def temporary(tmp_path_factory):
    """A short, empty folder for sockets and the like; short, because a socket's path must be."""
    folder = tmp_path_factory.mktemp("t")
    return folder, {"TMPDIR": str(folder)}


def test_f80_streams_survive_the_engine(model, temporary):
    folder, env = temporary
    with LiveServer(model, SMALL, env, folder) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        expected = [future.result().text for future in open_streams(server, pool, 8)]
        futures = open_streams(server, pool, 8)
        os.kill(server.pids[-1], signal.SIGKILL)
        until(lambda: server.get("/readyz").status == 503, 1.5, "not ready")
        assert server.get("/livez").status == 200
        until(lambda: server.get("/readyz").status == 200, 15.0, "ready again")
        assert [future.result().text for future in futures] == expected
        assert all(future.result().events[-1] == "[DONE]" for future in futures)


def test_f80_without_replay_streams_end_with_an_error(model, temporary):
    folder, env = temporary
    with (
        LiveServer(model, (*SMALL, "--no-replay"), env, folder) as server,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        futures = open_streams(server, pool, 8)
        killed = time.monotonic()
        os.kill(server.pids[-1], signal.SIGKILL)
        answers = [future.result() for future in futures]
        assert time.monotonic() - killed < 3.0
        for answer in answers:
            assert answer.events[-1] == "[DONE]"
            assert "error" in answer.events[-2]
            assert "finish_reason" not in json.dumps(answer.events[-2])
        server.wait_ready()
        assert server.completion().status == 200


def test_f82_the_exit_code_tells_how_it_ended(model, temporary):
    folder, env = temporary
    with LiveServer(model, SMALL, env, folder) as server:
        assert server.stop(signal.SIGTERM) == 0
    server = LiveServer(model, SMALL, env, folder)
    server.start()
    assert server.process is not None
    deadline = time.monotonic() + 60
    while server.process.poll() is None:
        assert time.monotonic() < deadline
        for pid in server.pids[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    assert server.process.returncode not in (0, None)
    assert "Traceback" not in server.log
    assert leftovers(folder) == []


@pytest.mark.parametrize("wait", [True, False], ids=["serving", "loading"])
def test_f83_children_end_with_the_front_end(model, temporary, wait):
    folder, env = temporary
    server = LiveServer(model, SMALL, env, folder)
    server.start(wait=wait)
    until(lambda: len(server.pids) > 1, 10.0, "the engine's process is there")
    children = server.pids[1:]
    server.stop(signal.SIGKILL)
    until(lambda: not any(map(is_alive, children)), 2.0, "the children have ended")


def test_f85_nothing_is_left_in_temporary_folders(model, temporary):
    folder, env = temporary
    shared = set(os.listdir("/dev/shm"))
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        server = LiveServer(model, SMALL, env, folder)
        server.start()
        server.stop(number)
        if number != signal.SIGKILL:
            assert leftovers(folder) == []
    assert {name for name in set(os.listdir("/dev/shm")) - shared if "octavo" in name} == set()


def test_f86_a_start_can_be_interrupted(model, temporary):
    folder, env = temporary
    server = LiveServer(model, SMALL, env, folder)
    server.start(wait=False)
    until(lambda: len(server.pids) > 1, 10.0, "the engine's process is there")
    children = server.pids[1:]
    started = time.monotonic()
    server.stop(signal.SIGINT, timeout_s=5.0)
    assert time.monotonic() - started < 5.0
    until(lambda: not any(map(is_alive, children)), 2.0, "the children have ended")
    assert leftovers(folder) == []
    assert "Traceback" not in server.log


def is_red(server):
    """Readiness is refused: the signal has been taken in."""
    try:
        return server.get("/readyz").status == 503
    except (OSError, http.client.HTTPException):
        return True


def test_f87_running_requests_finish_before_the_end(model, temporary):
    folder, env = temporary
    with (
        LiveServer(model, SMALL, env, folder) as server,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
        server.connection() as idle,
    ):
        expected = [future.result().text for future in open_streams(server, pool, 4)]
        futures = open_streams(server, pool, 4)
        idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in idle.recv(1000)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        until(lambda: is_red(server), 5.0, "the signal has been taken in")
        refused = []
        with contextlib.suppress(OSError, http.client.HTTPException):
            for _ in range(3):
                refused.append(server.completion())
        assert all(answer.status == 503 and answer.headers.get("connection") == "close" for answer in refused)
        assert [future.result().text for future in futures] == expected
        assert server.process.wait(20) == 0
        assert read_all(idle) == b""


def test_f87_what_does_not_finish_in_time_ends_with_an_error(model, temporary):
    folder, env = temporary
    with (
        LiveServer(model, (*SMALL, "--shutdown-timeout", "0.1"), env, folder) as server,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        futures = open_streams(server, pool, 8, n=8, temperature=1)
        started = time.monotonic()
        assert server.stop(signal.SIGTERM) == 0
        assert time.monotonic() - started < 8.0
        answers = [future.result() for future in futures]
        begun = [answer for answer in answers if answer.status == 200]
        assert begun
        assert all(answer.events[-1] == "[DONE]" and "error" in answer.events[-2] for answer in begun)
        assert {answer.status for answer in answers} <= {200, 503}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kv-cache-memory-bytes", "1"), "kv_cache_memory_bytes"),
        (("--kv-cache-memory-bytes", "4000G"), "kv_cache_memory_bytes"),
        (("--num-gpu-blocks-override", "3"), "max_model_len"),
        (("--kv-cache-memory-bytes", "-1"), "kv-cache-memory-bytes"),
    ],
)
def test_f93_memory_that_does_not_fit_is_said_before_anything_is_served(model, temporary, options, words):
    folder, env = temporary
    server = LiveServer(model, (*SMALL, *options), env, folder)
    server.start(wait=False)
    assert server.process is not None
    assert server.process.wait(20) != 0
    assert words.replace("_", "-") in server.log.splitlines()[-1].replace("_", "-"), server.log
    assert "Traceback" not in server.log
    assert leftovers(folder) == []


def test_f97_more_than_can_be_served_is_refused_at_once(model, temporary):
    folder, env = temporary
    with (
        LiveServer(model, (*SMALL, "--max-num-queued-reqs", "4"), env, folder) as server,
        concurrent.futures.ThreadPoolExecutor(48) as pool,
    ):
        alone = server.completion(max_tokens=64, ignore_eos=True).text
        before = server.rss_bytes
        answers = list(pool.map(lambda _: server.completion(max_tokens=64, ignore_eos=True), range(200)))
        served = [answer for answer in answers if answer.status == 200]
        refused = [answer for answer in answers if answer.status != 200]
        assert served
        assert refused
        assert {answer.text for answer in served} == {alone}
        for answer in refused:
            assert answer.status in (429, 503)
            assert answer.error["code"] == "queue_full"
            assert int(answer.headers["retry-after"]) >= 1
        assert sorted(answer.seconds for answer in refused)[len(refused) // 2] < 0.5
        assert server.metric("vllm:admission_rejections_total") == len(refused)
        assert server.rss_bytes - before < 64 * MIB
        assert server.completion(max_tokens=64, ignore_eos=True).text == alone


def test_f97_a_full_queue_is_told_before_the_prompt_is_read(model, temporary):
    folder, env = temporary
    with LiveServer(model, (*SMALL, "--max-num-queued-reqs", "1"), env, folder) as server:
        answer = server.raw(request_bytes({"prompt": ["a", "b"], "max_tokens": 1}), 2.0)
        assert answer.split(b" ")[1] == b"503"
