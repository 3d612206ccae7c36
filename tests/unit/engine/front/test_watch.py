"""The watch ticks only while there is work, and kills what makes no progress."""

from __future__ import annotations

import asyncio

from octavo.engine.front.watch import EngineWatch
from octavo.fault.state import EngineEvent, EngineState, next_state
from octavo.proto.messages import Load


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


def watched(body, *, stall_timeout_s):
    async def main():
        engine = FakeDispatcher()
        causes = []
        engine.watch = EngineWatch(engine, causes.append, stall_timeout_s=stall_timeout_s)
        engine.watch.work_began()
        try:
            await body(engine, causes)
        finally:
            engine.watch.close()

    asyncio.run(main())


def test_an_engine_that_steps_is_left_alone():
    async def body(engine, causes):
        await asyncio.sleep(0.4)
        assert (causes, engine.state) == ([], EngineState.HEALTHY)

    watched(body, stall_timeout_s=0.2)


def test_an_engine_that_answers_and_never_steps_is_killed_with_the_cause():
    async def body(engine, causes):
        engine.is_stepping = False
        await asyncio.sleep(0.35)
        assert "no step has finished for 0.2 s" in causes[0]

    watched(body, stall_timeout_s=0.2)


def test_a_silent_engine_is_suspect_until_it_answers():
    async def body(engine, causes):
        engine.is_answering = False
        await asyncio.sleep(1.0)
        assert (engine.state, causes) == (EngineState.SUSPECT, [])
        engine.is_answering = True
        await asyncio.sleep(0.4)
        assert engine.state is EngineState.HEALTHY

    watched(body, stall_timeout_s=1.6)


def test_nothing_ticks_without_work():
    async def body(engine, causes):
        engine.streams.clear()
        await asyncio.sleep(0.15)
        assert engine.num_pings == 0
        engine.streams.append(object())
        engine.watch.work_began()
        await asyncio.sleep(0.15)
        assert engine.num_pings > 0

    watched(body, stall_timeout_s=0.2)


def test_an_engine_that_is_being_replaced_is_not_judged():
    async def body(engine, causes):
        engine.is_answering = False
        engine.note(EngineEvent.DEATH)
        await asyncio.sleep(0.35)
        assert causes == []

    watched(body, stall_timeout_s=0.2)
