"""When requests are sent, and how many at once, with a sender and a clock that are told what to do."""

from __future__ import annotations

import asyncio

import pytest

from octavo.base.clock import ManualClock
from octavo.bench.samples import Sample
from octavo.bench.serve.load import LoadRun
from octavo.bench.serve.record import RequestRecord

SAMPLES = [Sample([index], 1) for index in range(6)]


class FakeSender:
    """Each request takes `num_turns` turns of the event loop; `hangs` names those that never end."""

    def __init__(self, clock, *, num_turns=3, hangs=()):
        self.clock = clock
        self.num_turns = num_turns
        self.hangs = hangs
        self.sent = []
        self.num_open = self.peak_open = 0

    async def send(self, sample, index, *, arrival_s):
        self.sent.append((index, sample.prompt_token_ids, arrival_s, self.clock.now_s()))
        self.num_open += 1
        self.peak_open = max(self.peak_open, self.num_open)
        try:
            for _ in range(self.num_turns):
                await asyncio.sleep(0)
            if index in self.hangs:
                await asyncio.sleep(60)
        finally:
            self.num_open -= 1
        return RequestRecord(index=index, num_prompt_tokens=1, is_success=True)


def make_run(clock, sender, **options):
    async def sleep(seconds):
        clock.advance(seconds)
        await asyncio.sleep(0)

    return LoadRun(sender, SAMPLES, clock=clock, sleep=sleep, **options)


def test_requests_are_sent_when_they_are_due():
    clock = ManualClock(100.0)
    sender = FakeSender(clock)
    result = asyncio.run(make_run(clock, sender).run([0.0, 0.5, 0.5, 2.0, 2.0, 7.0]))
    assert [due_s - 100 for _, _, due_s, _ in sender.sent] == [0.0, 0.5, 0.5, 2.0, 2.0, 7.0]
    assert all(sent_s >= due_s for _, _, due_s, sent_s in sender.sent)
    assert [ids for _, ids, _, _ in sender.sent] == [[index] for index in range(6)]
    assert [record.index for record in result.records] == list(range(6))
    assert (result.duration_s, result.num_unfinished) == (7.0, 0)
    assert result.cpu_s >= 0


@pytest.mark.parametrize(("limit", "peak"), [(None, 6), (2, 2), (1, 1)])
def test_no_more_than_the_limit_are_open_at_once(limit, peak):
    clock = ManualClock()
    sender = FakeSender(clock)
    asyncio.run(make_run(clock, sender, max_concurrency=limit).run([0.0] * 6))
    assert sender.peak_open == peak


def test_finished_requests_are_told():
    told = []
    clock = ManualClock()
    asyncio.run(make_run(clock, FakeSender(clock), on_finished=told.append).run([0.0] * 6))
    assert sorted(record.index for record in told) == list(range(6))


def test_an_interrupt_keeps_what_has_finished_and_ends_the_rest():
    clock = ManualClock()
    sender = FakeSender(clock, hangs={2, 4})

    async def run():
        task = asyncio.create_task(make_run(clock, sender).run([0.0] * 6))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        result = await task
        return result, task.cancelled(), len(asyncio.all_tasks())

    result, was_cancelled, num_tasks = asyncio.run(run())
    assert [record.index for record in result.records] == [0, 1, 3, 5]
    assert (result.num_unfinished, was_cancelled, num_tasks, sender.num_open) == (2, False, 1, 0)


def test_a_fault_of_ours_ends_the_run_and_is_not_hidden():
    clock = ManualClock()

    class Broken(FakeSender):
        async def send(self, sample, index, *, arrival_s):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(make_run(clock, Broken(clock)).run([0.0] * 6))
