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


def test_the_first_interrupt_waits_for_the_check():
    reached = False
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
        interrupt.check()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_does_not_wait():
    after_first = after_second = False
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
        after_first = True
        os.kill(os.getpid(), signal.SIGINT)
        after_second = True
    assert (after_first, after_second) == (True, False)


def test_an_interrupt_nobody_checked_is_raised_at_the_end():
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)


def test_a_handler_of_the_program_stays():
    calls = []
    signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    with DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
    assert calls == [1]
