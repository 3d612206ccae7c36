"""F80 to F87: whoever is sent whichever signal in whatever state, the others notice, end or go on, and nothing is left.

A row is (state, victim, signals, outcome), for one front end and for two with a launcher. `loading` is held by stopping
the engine as soon as it exists, so that no row depends on how fast a model loads.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import time

import pytest
from fakes.fault_suite import SMALL
from fakes.live_server import LiveServer, until
from fakes.process_family import ENGINE, FRONT_END, has_begun, is_alive, leftovers, open_streams, pids_of, shared_memory

KILL, TERM, INT, STOP, CONT = signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGCONT
NUM_STREAMS = 8
NOTICED_S = 2.0
"""The promise is 1 s; the rest is for a machine that does other things."""
GONE_S = 4.0

GOES_ON, RESTARTS, DIES = "goes on", "restarts", "dies"
"""Outcomes; a number is the exit code of a server that ends by itself."""

ONE = [
    ("loading", "engine", (KILL,), 1),
    ("loading", "engine", (TERM, CONT), GOES_ON),
    ("loading", "server", (KILL,), DIES),
    ("loading", "server", (STOP, KILL), DIES),
    ("loading", "server", (TERM,), 128 + TERM),
    ("loading", "server", (INT,), 128 + INT),
    ("idle", "engine", (KILL,), RESTARTS),
    ("idle", "engine", (TERM,), GOES_ON),
    ("idle", "engine", (STOP, CONT), GOES_ON),
    ("idle", "server", (KILL,), DIES),
    ("idle", "server", (STOP, KILL), DIES),
    ("idle", "server", (STOP, CONT), GOES_ON),
    ("idle", "server", (TERM,), 0),
    ("idle", "server", (INT,), 0),
    ("streams", "engine", (KILL,), RESTARTS),
    ("streams", "engine", (STOP,), RESTARTS),
    ("streams", "engine", (STOP, CONT), GOES_ON),
    ("streams", "engine", (TERM,), GOES_ON),
    ("streams", "server", (KILL,), DIES),
    ("streams", "server", (STOP, KILL), DIES),
    ("streams", "server", (STOP, CONT), GOES_ON),
    ("streams", "server", (TERM,), 0),
]
TWO = [
    ("loading", "engine", (KILL,), 1),
    ("loading", "server", (KILL,), DIES),
    ("loading", "server", (TERM,), 128 + TERM),
    ("loading", "front end", (KILL, CONT), GOES_ON),
    ("idle", "engine", (KILL,), RESTARTS),
    ("idle", "server", (KILL,), DIES),
    ("idle", "server", (STOP, KILL), DIES),
    ("idle", "server", (TERM,), 0),
    ("idle", "front end", (KILL,), GOES_ON),
    ("idle", "front end", (TERM,), GOES_ON),
    ("streams", "engine", (KILL,), RESTARTS),
    ("streams", "engine", (STOP,), RESTARTS),
    ("streams", "server", (KILL,), DIES),
    ("streams", "server", (STOP, CONT), GOES_ON),
    ("streams", "server", (TERM,), 0),
]
QUICK = {
    (1, "loading", "server", (TERM,)),
    (1, "loading", "engine", (KILL,)),
    (1, "idle", "engine", (KILL,)),
    (1, "streams", "server", (KILL,)),
    (2, "streams", "engine", (KILL,)),
}
"""Not marked slow."""


def rows():
    for num_front_ends, table in ((1, ONE), (2, TWO)):
        for state, victim, numbers, outcome in table:
            names = "+".join(signal.Signals(number).name[3:] for number in numbers)
            marks = [] if (num_front_ends, state, victim, numbers) in QUICK else [pytest.mark.slow]
            values = (num_front_ends, state, victim, numbers, outcome)
            yield pytest.param(*values, id=f"{num_front_ends}-{state}-{victim}-{names}", marks=marks)


class Family:
    """A server under test, and what its streams must say."""

    def __init__(self, server: LiveServer, pool: concurrent.futures.ThreadPoolExecutor) -> None:
        self.server = server
        self._pool = pool
        self._streams: list = []
        self._expected: list[str] = []

    def bring_to(self, state: str) -> None:
        """Start, and go on until the server is in this state."""
        self.server.start(wait=False)
        if state == "loading":
            until(lambda: any(map(has_begun, pids_of(self.server, ENGINE))), 20.0, "the engine's process has begun")
            self.send("engine", STOP)
            until(lambda: self.answers("/livez"), 30.0, "the server listens")
            return
        self.server.wait_ready()
        until(lambda: "startup complete" in self.server.log, 20.0, "all front ends are ready")
        if state == "streams":
            self._expected = [stream.result().text for stream in open_streams(self.server, self._pool, NUM_STREAMS)]
            self._streams = open_streams(self.server, self._pool, NUM_STREAMS)

    def send(self, victim: str, number: int) -> None:
        os.kill(self.pid_of(victim), number)

    def pid_of(self, victim: str) -> int:
        if victim == "server":
            return self.server.pid
        return pids_of(self.server, ENGINE if victim == "engine" else FRONT_END)[0]

    def check_streams(self) -> None:
        """Each has the text of an undisturbed run."""
        answers = [stream.result() for stream in self._streams]
        assert [answer.text for answer in answers] == self._expected
        assert all(answer.events[-1] == "[DONE]" for answer in answers)

    def check_gone(self, pids: list[int]) -> None:
        until(lambda: not any(map(is_alive, pids)), GONE_S, "all its processes have ended")
        assert leftovers(self.server.folder) == []
        assert shared_memory() == set()
        assert "Traceback" not in self.server.log, self.server.log

    def is_ready(self) -> bool:
        return self.answers("/readyz")

    def answers(self, path: str) -> bool:
        with contextlib.suppress(OSError):
            return self.server.get(path).status == 200
        return False


@contextlib.contextmanager
def family(model, num_front_ends, folder):
    options = (*SMALL, "--stall-timeout-s=1.5", f"--api-server-count={num_front_ends}")
    server = LiveServer(model, options, {"TMPDIR": str(folder)}, folder)
    with concurrent.futures.ThreadPoolExecutor(NUM_STREAMS) as pool:
        try:
            yield Family(server, pool)
        finally:
            if server.process is not None:
                # Its session's group, which has nobody else in it; what is stopped dies of this too.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(server.pid, KILL)
                server.process.wait()


@pytest.mark.parametrize(("num_front_ends", "state", "victim", "numbers", "outcome"), list(rows()))
def test_who_gets_a_signal(tiny_model, tmp_path_factory, num_front_ends, state, victim, numbers, outcome):
    with family(tiny_model, num_front_ends, tmp_path_factory.mktemp("k")) as its:
        its.bring_to(state)
        pids, engine_pid = its.server.pids, its.pid_of("engine")
        pid = its.pid_of(victim)
        for number in numbers:
            # A CONT in a row for another victim lets the engine load that was stopped to hold the state.
            os.kill(engine_pid if number == CONT and state == "loading" else pid, number)
            time.sleep(0.3 if number == STOP else 0.0)
        sent_s = time.monotonic()
        if outcome == RESTARTS:
            if STOP in numbers:
                until(lambda: not is_alive(pid), 10.0, "the watchdog has killed it")
            else:
                until(lambda: not its.is_ready(), NOTICED_S, "the death is noticed")
            red_s = time.monotonic() - sent_s
            until(its.is_ready, 20.0, "a successor serves")
            print(f"red after {red_s:.3f} s, green after {time.monotonic() - sent_s:.3f} s")
            assert its.pid_of("engine") != engine_pid
        if outcome in (RESTARTS, GOES_ON):
            its.server.wait_ready()
            its.check_streams()
            assert its.server.completion().status == 200
            assert outcome == RESTARTS or its.pid_of("engine") == engine_pid
            pids += its.server.pids
            assert its.server.stop(TERM) == 0
        elif outcome == DIES:
            assert its.server.process.wait(GONE_S) == -KILL
        else:
            assert its.server.process.wait(20.0) == outcome, its.server.log
            if outcome == 0:
                its.check_streams()
            else:
                last = its.server.log.splitlines()[-1]
                assert ("SIGKILL" if KILL in numbers else signal.Signals(numbers[-1]).name) in last, last
        its.check_gone(pids)
