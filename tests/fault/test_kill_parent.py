"""Whatever ends the supervisor's program, and whatever state the engine is in, no process and no file is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.async_engine import is_alive

EMBEDDER = Path(__file__).with_name("embedder.py")


@contextmanager
def embedder(model):
    """(the running program, its engine's process id)."""
    with subprocess.Popen([sys.executable, str(EMBEDDER), str(model)], stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program, int(program.stdout.readline())
        finally:
            program.kill()


def wait_until_gone(pid, timeout_s):
    started_s = time.monotonic()
    while is_alive(pid) and time.monotonic() - started_s < timeout_s:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT])
def test_the_engine_ends_with_its_program(tiny_model, socket_parent, number):
    with embedder(tiny_model) as (program, engine_pid):
        assert len(list(socket_parent.iterdir())) == 1
        program.send_signal(number)
        assert wait_until_gone(engine_pid, 2.0)
        program.wait(5.0)
    assert list(socket_parent.iterdir()) == []


def test_a_stopped_engine_ends_with_its_program(tiny_model, socket_parent):
    with embedder(tiny_model) as (program, engine_pid):
        os.kill(engine_pid, signal.SIGSTOP)
        program.kill()
        assert wait_until_gone(engine_pid, 2.0)
    assert list(socket_parent.iterdir()) == []


def test_the_next_start_tidies_up_behind_a_program_and_an_engine_that_were_killed_together(tiny_model, socket_parent):
    with embedder(tiny_model) as (program, engine_pid):
        os.kill(engine_pid, signal.SIGSTOP)
        os.kill(engine_pid, signal.SIGKILL)
        program.kill()
    with embedder(tiny_model):
        assert len(list(socket_parent.iterdir())) == 1
