"""--api-server-count: several front ends, one port, one engine."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.live_server import LiveServer, descendants

OPTIONS = (
    "--kernel-backend=reference",
    "--max-model-len=256",
    "--num-gpu-blocks-override=256",
    "--served-model-name=tiny",
    "--api-server-count=2",
)


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
