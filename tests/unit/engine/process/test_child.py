"""How the end of a process is put into words."""

from __future__ import annotations

import pytest

from octavo.engine.process.child import describe_exit


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (1, "ended with exit code 1"),
        (-9, "killed by SIGKILL: out of memory, or killed by hand"),
        (-11, "killed by SIGSEGV"),
        (-64, "killed by SIGRTMAX"),
        (-100, "killed by signal 100"),
    ],
)
def test_an_exit_is_described_by_its_code_or_signal(code, words):
    assert words in describe_exit(code)
