"""The throughput line comes while there is work, says what vLLM's says, and never comes when idle."""

from __future__ import annotations

from fakes.engine_stats import scheduler_stats

from octavo.base.clock import ManualClock
from octavo.obs.throughput import ThroughputLog, ThroughputReport


class Loop:
    """An engine's loop that makes turns when told."""

    def __init__(self):
        self.clock = ManualClock()
        self.lines = []
        self.stats = scheduler_stats()
        self._log = ThroughputLog(ThroughputReport(), self.clock, self.lines.append)

    def turn(self, num_generated=0, *, is_busy=True, after_s=0.0):
        self.clock.advance(after_s)
        self._log.turn(num_generated, is_busy=is_busy, stats=lambda: self.stats)


def test_a_line_has_the_words_people_search_for():
    loop = Loop()
    loop.turn()
    loop.stats = scheduler_stats(
        num_prompt_tokens=500, num_running=3, num_waiting=2, kv_usage=0.125, prefix_queries=200, prefix_hits=50
    )
    loop.turn(100, after_s=10.0)
    assert loop.lines == [
        "Engine 000: Avg prompt throughput: 50.0 tokens/s, Avg generation throughput: 10.0 tokens/s, "
        "Running: 3 reqs, Waiting: 2 reqs, CPU KV cache usage: 12.5%, Prefix cache hit rate: 25.0%"
    ]


def test_rates_are_those_since_the_last_line():
    loop = Loop()
    loop.turn()
    loop.turn(100, after_s=10.0)
    loop.turn(300, after_s=10.0)
    assert "generation throughput: 30.0 tokens/s" in loop.lines[1]


def test_an_idle_engine_writes_nothing():
    loop = Loop()
    for _ in range(10):
        loop.turn(is_busy=False, after_s=60.0)
    assert loop.lines == []


def test_short_work_is_reported_when_it_ends_if_the_last_line_is_old():
    loop = Loop()
    loop.turn(is_busy=False)
    loop.turn(after_s=3600.0)
    loop.turn(50, is_busy=False, after_s=2.0)
    assert len(loop.lines) == 1
    assert "generation throughput: 25.0 tokens/s" in loop.lines[0]
    loop.turn(after_s=1.0)
    loop.turn(50, is_busy=False, after_s=1.0)
    assert len(loop.lines) == 1


def test_the_time_between_bursts_does_not_thin_the_rate():
    loop = Loop()
    loop.turn()
    loop.turn(60, is_busy=False, after_s=6.0)
    loop.turn(after_s=1000.0)
    loop.turn(60, after_s=6.0)
    assert "generation throughput: 10.0 tokens/s" in loop.lines[0]
