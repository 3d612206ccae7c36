"""Grammars that cost: many of them, slow ones, clients that do not wait for them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import time
from pathlib import Path

from fakes.bad_requests import CHAT
from fakes.fault_suite import MIB, SMALL, leave
from fakes.live_server import Canary, LiveServer


def test_s57_many_grammars_leave_no_memory_behind(suite):
    def ask(number):
        schema = {"type": "object", "properties": {f"name_{number}": {"type": "integer"}}}
        answer = suite.server.completion(structured_outputs={"json": schema}, max_tokens=1)
        assert answer.status == 200, answer.body

    with suite.case(), concurrent.futures.ThreadPoolExecutor(4) as pool:
        grown = []
        for start in range(0, 1500, 150):
            before = suite.server.rss_bytes
            list(pool.map(ask, range(start, start + 150)))
            grown.append(suite.server.rss_bytes - before)
            if grown[-1] < 4 * MIB:
                return  # as many are kept as may be
        raise AssertionError(grown)


def nested(depth):
    """Two ways to go on at each level."""
    if depth == 0:
        return {"type": "string", "pattern": "(a|aa){1,60}b?"}
    kinds = [
        {"type": "object", "properties": {"k": {"const": name}, "v": nested(depth - 1)}, "required": ["k", "v"]}
        for name in ("left", "right")
    ]
    return {"oneOf": kinds}


def test_f03_clients_that_leave_slow_grammars_leave_nothing_running(suite):
    with suite.case() as canary, concurrent.futures.ThreadPoolExecutor(8) as pool:
        bodies = [
            {"prompt": "a", "max_tokens": 400, "structured_outputs": {"json": nested(7) | {"title": f"t{number}"}}}
            for number in range(8)
        ]

        def go(body):
            with contextlib.suppress(TimeoutError):
                leave(suite.server, body, after_s=1.0)

        list(pool.map(go, bodies))
    # Now nobody sings, and it is idle in the strict sense: processor time stands still.
    time.sleep(1.0)
    assert suite.server.get("/health").seconds < 1.0
    assert canary.wrong == []


def test_constraints_of_all_kinds_beside_each_other_disturb_nobody(suite):
    bodies = [
        {"structured_outputs": {"regex": "[ab]{1,20}"}},
        {"structured_outputs": {"choice": ["x", "y"]}},
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"regex": "(a|aa)*c"}},
        {},
    ]

    def ask(body):
        messages = [{"role": "user", "content": "hi"}]
        return suite.server.post(CHAT, {"messages": messages, "max_tokens": 24, "seed": 1} | body)

    with suite.case(), concurrent.futures.ThreadPoolExecutor(10) as pool:
        first = list(pool.map(ask, bodies * 4))
        again = list(pool.map(ask, bodies))
    assert {answer.status for answer in first + again} == {200}
    for index, answer in enumerate(again):
        assert {other.text for other in first[index :: len(bodies)]} == {answer.text}


def grammar_pids(server):
    return [pid for pid in server.pids if b"grammar_check" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_grammar_process_killed_in_the_middle_of_a_check_costs_its_request_and_nobody_else(model, tmp_path):
    def ask(number):
        return server.completion(structured_outputs={"regex": f"a{{{number}}}"}, max_tokens=1)

    with LiveServer(model, SMALL, {}, tmp_path) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert grammar_pids(server) == []
        canary = Canary(server)
        with canary.singing(Canary(server).sing()):
            assert ask(3).status == 200
            (pid,) = grammar_pids(server)
            os.kill(pid, signal.SIGSTOP)
            asked = pool.submit(ask, 4)
            time.sleep(0.3)
            assert not asked.done()
            os.kill(pid, signal.SIGKILL)
            answer = asked.result(30)
            assert answer.status == 503
            assert "the process that checks grammars has ended in the middle of the check" in answer.error["message"]
            assert ask(4).status == 200
            assert grammar_pids(server) != [pid]
        assert canary.wrong == []
