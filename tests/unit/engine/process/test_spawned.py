"""An engine process that was started before anybody knew what to tell it."""

from __future__ import annotations

import signal
from pathlib import Path

from octavo.engine.process.spawned import SpawnedEngine


def test_one_that_nobody_claims_is_ended():
    with SpawnedEngine() as spawned:
        pid = spawned._process.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_one_that_is_claimed_is_its_claimants():
    with SpawnedEngine() as spawned:
        process, end = spawned.claim()
    assert process.poll() is None
    end.close()
    # Told nothing, it ends by itself once nobody can tell it anything any more.
    assert process.wait(60) == 1


def test_ctrl_c_for_the_group_is_no_concern_of_one_that_still_imports():
    with SpawnedEngine() as spawned:
        process, end = spawned.claim()
        while not _ignores(process.pid, signal.SIGINT):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        end.close()
        assert process.wait(60) == 1


def _ignores(pid, number):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:")]
    return int(line.split()[1], 16) >> (number - 1) & 1
