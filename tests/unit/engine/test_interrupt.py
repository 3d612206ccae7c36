"""Ctrl-C is taken between steps."""

from __future__ import annotations

import os
import signal

import pytest

from octavo.engine.interrupt import DeferredInterrupt


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(num_times, *, check_after):
    """Names of the places that were passed until KeyboardInterrupt came."""
    passed = []
    try:
        with DeferredInterrupt() as interrupt:
            for number in range(num_times):
                os.kill(os.getpid(), signal.SIGINT)
                passed.append(f"signal {number}")
            if check_after:
                interrupt.check()
                passed.append("check")
    except KeyboardInterrupt:
        passed.append("interrupt")
    return passed


def test_the_first_interrupt_waits_for_the_check():
    assert interrupted(1, check_after=True) == ["signal 0", "interrupt"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_does_not_wait():
    assert interrupted(2, check_after=True) == ["signal 0", "interrupt"]


def test_an_interrupt_nobody_checked_is_raised_at_the_end():
    assert interrupted(1, check_after=False) == ["signal 0", "interrupt"]


def test_without_an_interrupt_nothing_is_raised():
    assert interrupted(0, check_after=True) == ["check"]


def test_a_handler_of_the_program_stays():
    calls = []
    signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    with DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
    assert calls == [1]
