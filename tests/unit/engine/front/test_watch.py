"""The watch ticks only while there is work, and kills what makes no progress."""

from __future__ import annotations

import pytest
from fakes.timers import FakeTimers

from octavo.engine.front.watch import SILENCE_S, EngineWatch
from octavo.fault.state import EngineEvent, EngineState, next_state
from octavo.proto.messages import Load

STALL_S = 4 * SILENCE_S


class FakeDispatcher:
    """An engine with work that answers pings as `is_answering` and `is_stepping` say."""

    def __init__(self):
        self.state = EngineState.HEALTHY
        self.streams = [object()]
        self.watch = None
        self.is_answering = self.is_stepping = True
        self.num_steps = self.num_pings = 0

    def note(self, event):
        self.state = next_state(self.state, event)

    def ping(self):
        self.num_pings += 1
        if self.is_answering:
            self.num_steps += self.is_stepping
            self.watch.heard(Load(num_steps=self.num_steps, num_running=1, num_waiting=0))


class Watched:
    """An engine under a watch, and time that passes when told."""

    def __init__(self):
        self.engine, self.timers, self.causes = FakeDispatcher(), FakeTimers(), []
        self.engine.watch = EngineWatch(self.engine, self.causes.append, stall_timeout_s=STALL_S, timers=self.timers)
        self.engine.watch.work_began()


@pytest.fixture
def watched():
    return Watched()


def test_an_engine_that_steps_is_left_alone(watched):
    watched.timers.advance(3 * STALL_S)
    assert (watched.causes, watched.engine.state) == ([], EngineState.HEALTHY)


def test_an_engine_that_answers_and_never_steps_is_killed_with_the_cause(watched):
    watched.timers.advance(1)
    watched.engine.is_stepping = False
    watched.timers.advance(STALL_S - 2)
    assert watched.causes == []
    watched.timers.advance(2)
    (cause,) = watched.causes
    assert f"no step has finished for {STALL_S:.1f} s" in cause


def test_a_silent_engine_is_suspect_until_it_answers(watched):
    watched.engine.is_answering = False
    watched.timers.advance(SILENCE_S)
    assert (watched.engine.state, watched.causes) == (EngineState.SUSPECT, [])
    watched.engine.is_answering = True
    watched.timers.advance(SILENCE_S)
    assert watched.engine.state is EngineState.HEALTHY


def test_nothing_ticks_without_work(watched):
    watched.engine.streams.clear()
    watched.timers.advance(STALL_S)
    assert (watched.engine.num_pings, watched.timers.pending) == (0, [])
    watched.engine.streams.append(object())
    watched.engine.watch.work_began()
    watched.timers.advance(STALL_S)
    assert watched.engine.num_pings > 0


def test_an_engine_that_is_being_replaced_is_not_judged(watched):
    watched.engine.is_answering = False
    watched.engine.note(EngineEvent.DEATH)
    watched.timers.advance(3 * STALL_S)
    assert watched.causes == []


def test_a_watch_that_was_starved_itself_judges_nothing(watched):
    watched.timers.advance(1)
    watched.timers.sleep_through(3 * STALL_S)
    assert (watched.causes, watched.engine.state) == ([], EngineState.HEALTHY)


def test_nothing_ticks_once_it_is_closed(watched):
    watched.engine.watch.close()
    assert watched.timers.pending == []
