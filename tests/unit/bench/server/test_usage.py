"""Readings of /proc are those of the process that is asked for."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import pytest

from octavo.bench.server.usage import Usage, descendants, read_process, read_server

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"


def started(code, *words):
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def ended(process):
    process.kill()
    process.wait()
    process.stdout.close()


def test_cpu_time_of_another_process_is_its_own():
    process = started("s = 0\nfor i in range(10**6): s += i\nprint('up', flush=True)\nimport time; time.sleep(60)")
    try:
        used = read_process(process.pid)
        time.sleep(0.05)
        assert used.cpu_s > 0.01
        assert read_process(process.pid).cpu_s - used.cpu_s < 0.02
    finally:
        ended(process)


def test_memory_threads_and_descriptors_of_this_process():
    # Sockets that earlier tests dropped would close in between.
    gc.collect()
    used = read_process(os.getpid())
    assert 10**6 < used.rss_bytes <= used.peak_rss_bytes
    assert used.num_threads >= 1
    with open(os.devnull) as _:
        assert read_process(os.getpid()).num_fds == used.num_fds + 1


def test_a_process_that_is_gone_takes_nothing():
    process = started(SLEEPER)
    ended(process)
    assert read_process(process.pid) == Usage()


@pytest.mark.parametrize(("module", "role"), [("process", "engine"), ("template", "helpers")])
def test_processes_are_told_apart_by_their_command(module, role):
    # The name must not stand in the parent's own command.
    run = f"subprocess.run([sys.executable, '-c', {SLEEPER!r}, 'octavo.engine.{module}.' + 'main'])"
    process = started(f"import subprocess, sys; {run}")
    try:
        (child,) = descendants(process.pid)
        usage = read_server(process.pid)
        assert getattr(usage, role).num_threads == 1
        assert usage.front_end.num_threads == 1
        assert usage.total.rss_bytes == usage.engine.rss_bytes + usage.helpers.rss_bytes + usage.front_end.rss_bytes
        os.kill(child, 9)
    finally:
        ended(process)
