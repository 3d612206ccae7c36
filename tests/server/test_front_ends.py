"""--api-server-count: several front ends, one port, one engine."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.live_server import LiveServer, descendants, until
from fakes.process_family import ENGINE, pids_of

OPTIONS = (
    "--kernel-backend=reference",
    "--max-model-len=256",
    "--num-gpu-blocks-override=256",
    "--served-model-name=tiny",
    "--api-server-count=2",
)
PROMPT = "hello and hello again"


@pytest.fixture
def pair(tiny_folder, tmp_path):
    with LiveServer(tiny_folder, OPTIONS, {}, tmp_path) as server:
        deadline = time.monotonic() + 20
        while "Application startup complete." not in server.log:
            assert time.monotonic() < deadline, server.log
            time.sleep(0.05)
        yield server


def front_ends(server):
    """Process ids of the front ends."""
    return [pid for pid in descendants(server.pid) if b"front_end" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def texts(server, count):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda i: server.completion(prompt=f"p{i % 4}", request_id="same").text, range(count)))


def test_both_serve_with_the_same_ids_and_the_metrics_hold_the_requests_of_all(pair):
    assert len(front_ends(pair)) == 2
    found = texts(pair, 32)
    assert len(set(found)) == 4
    assert [found[i % 4] for i in range(32)] == found
    assert pair.metric("vllm:generation_tokens_total") == 32 * 4


def test_a_front_end_that_dies_is_replaced_and_the_other_goes_on(pair):
    before = front_ends(pair)
    os.kill(before[0], signal.SIGKILL)
    assert texts(pair, 8)
    deadline = time.monotonic() + 10
    while len(front_ends(pair)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pair.process.poll() is None


def test_load_and_the_queues_limit_are_of_all_front_ends(tiny_folder, tmp_path):
    options = (*OPTIONS, "--max-num-seqs=1", "--max-num-queued-reqs=6")
    with LiveServer(tiny_folder, options, {}, tmp_path) as server:
        until(lambda: "Application startup complete." in server.log, 20, server.log)
        # The first in hand runs, the others wait: whichever front end they came to, one limit counts them.
        with ThreadPoolExecutor(16) as pool:
            long = {"max_tokens": 200, "ignore_eos": True, "temperature": 1}
            statuses = [pool.submit(lambda: server.completion(**long).status) for _ in range(16)]
            until(lambda: sum(status.done() for status in statuses) >= 9, 20, "what is too much is refused")
            seen = {server.get("/load").json["server_load"] for _ in range(8)}
            assert all(2 <= load <= 7 for load in seen), seen
            found = sorted(status.result() for status in statuses)
        assert (found.count(200) + found.count(503), found.count(200) <= 8) == (16, True)
        assert server.get("/load").json == {"server_load": 0}
        assert server.metric("octavo_queued_requests") == 0


def test_term_finishes_the_streams_of_all_within_one_deadline(pair):
    (engine,) = pids_of(pair, ENGINE)
    asked = {"prompt": PROMPT, "max_tokens": 120, "ignore_eos": True, "stream": True}
    num_tokens = pair.post("/tokenize", {"prompt": PROMPT}).json["count"]
    # What is not prepared yet waits with its bytes, what the engine has waits with its tokens.
    assert num_tokens != len(PROMPT)
    with ThreadPoolExecutor(8) as pool:
        os.kill(engine, signal.SIGSTOP)  # no stream ends before all are there, and none before TERM
        answers = [pool.submit(lambda: pair.completion(**asked)) for _ in range(8)]
        until(lambda: pair.metric("octavo_queued_prompt_tokens") == 8 * num_tokens, 20, "the engine has all")
        started = time.monotonic()
        pair.process.send_signal(signal.SIGTERM)
        until(lambda: "front ends finish what they have" in pair.log, 5, "what runs is finished first")
        assert not any(answer.done() for answer in answers)
        os.kill(engine, signal.SIGCONT)
        assert pair.process.wait(40) == 0
        assert time.monotonic() - started < 35
        assert [answer.result().events[-1] for answer in answers] == ["[DONE]"] * 8
        assert {answer.result().text for answer in answers} == {answers[0].result().text}


def test_term_ends_all_of_them_in_order(pair):
    family = pair.pids
    assert pair.stop() == 0
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists()]


def test_none_outlives_a_launcher_that_is_killed(pair):
    family = pair.pids
    pair.stop(signal.SIGKILL)
    deadline = time.monotonic() + 2
    while [pid for pid in family if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
