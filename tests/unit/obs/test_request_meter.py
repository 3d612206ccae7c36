"""A scripted history of requests gives exactly these counts and records."""

from __future__ import annotations

import pytest
from fakes.metrics_page import parse

from octavo.base.clock import ManualClock
from octavo.obs.catalogue import FRONT_END_METRICS
from octavo.obs.counters import CounterLayout, Counters
from octavo.obs.exposition import MetricsPage
from octavo.obs.request_meter import RequestFacts, RequestMeter


class World:
    def __init__(self):
        self.clock = ManualClock(100.0)
        self.records = []
        counters = Counters.private(CounterLayout(FRONT_END_METRICS))
        self.meter = RequestMeter(counters, self.clock, [self.records.append])
        self._page = MetricsPage(counters, model_name="m", max_model_len=1000, cache_config={})

    def start(self, request_id="r", *, n=1, prompt=10, max_tokens=16):
        facts = RequestFacts(
            request_id=request_id,
            num_prompt_tokens=prompt,
            num_sequences=n,
            max_tokens=max_tokens,
            temperature=0.5,
            top_p=0.9,
            arrival_s=self.clock.now_s(),
        )
        return self.meter.start(facts)

    @property
    def page(self):
        return parse(self._page)

    def sums(self, *names):
        """(count, sum) of histograms."""
        page = self.page
        return [(page.value(f"vllm:{name}_count"), page.value(f"vllm:{name}_sum")) for name in names]


@pytest.fixture
def world():
    return World()


def run_one(world):
    """Queued 1 s, prefill 2 s, then 3 tokens 0.5 s apart, end 0.25 s after the last."""
    track = world.start()
    world.clock.advance(1.0)
    track.schedule(0, world.clock.now_s(), 4)
    world.clock.advance(2.0)
    track.add_tokens(0, 1, world.clock.now_s())
    for _ in range(2):
        world.clock.advance(0.5)
        track.add_tokens(0, 1, world.clock.now_s())
    world.clock.advance(0.25)
    track.end(0, "stop", world.clock.now_s())


@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("time_to_first_token_seconds", 1, 3.0),
        ("inter_token_latency_seconds", 2, 1.0),
        ("request_queue_time_seconds", 1, 1.0),
        ("request_prefill_time_seconds", 1, 2.0),
        ("request_decode_time_seconds", 1, 1.0),
        ("request_inference_time_seconds", 1, 3.0),
        ("e2e_request_latency_seconds", 1, 4.25),
        ("request_time_per_output_token_seconds", 1, 0.5),
        ("request_prompt_tokens", 1, 10),
        ("request_generation_tokens", 1, 3),
        ("request_max_num_generation_tokens", 1, 3),
        ("request_params_max_tokens", 1, 16),
        ("request_params_n", 1, 1),
    ],
)
def test_a_request_is_counted_with_all_its_times(world, name, count, total):
    run_one(world)
    assert world.sums(name) == [(count, total)]


def test_tokens_are_counted_by_source(world):
    run_one(world)
    page = world.page
    assert page.value("vllm:prompt_tokens_total") == 10
    assert page.value("vllm:prompt_tokens_cached_total") == 4
    assert page.value("vllm:prompt_tokens_by_source_total", source="local_cache_hit") == 4
    assert page.value("vllm:prompt_tokens_by_source_total", source="local_compute") == 6
    assert page.value("vllm:generation_tokens_total") == 3
    assert page.value("vllm:request_success_total", finished_reason="stop") == 1


def test_aborts_are_counted_at_once(world):
    tracks = [world.start(f"r{i}") for i in range(5)]
    for track in tracks[:3]:
        track.add_tokens(0, 1, world.clock.now_s())
    for track in tracks:
        track.abort()
    page = world.page
    assert page.value("vllm:request_success_total", finished_reason="abort") == 5
    assert page.value("vllm:e2e_request_latency_seconds_count") == 5
    assert page.value("vllm:time_to_first_token_seconds_count") == 3
    assert len(world.records) == 5


def test_a_request_that_never_ran_has_no_times_but_counts(world):
    world.start().end(0, "error", 101.0)
    assert world.sums("e2e_request_latency_seconds", "request_queue_time_seconds", "request_decode_time_seconds") == [
        (1, 1.0),
        (0, 0.0),
        (0, 0.0),
    ]


def test_an_end_counts_once_and_tokens_behind_it_do_not(world):
    track = world.start()
    track.add_tokens(0, 2, 101.0)
    track.end(0, "stop", 102.0)
    track.add_tokens(0, 5, 103.0)
    track.end(0, "abort", 104.0)
    track.abort()
    page = world.page
    assert page.value("vllm:generation_tokens_total") == 2
    assert page.value("vllm:request_success_total", finished_reason="abort") == 0
    assert len(world.records) == 1


def test_sequences_count_one_by_one_and_their_request_once(world):
    track = world.start(n=3)
    for index, num_tokens in enumerate((4, 9, 2)):
        track.add_tokens(index, num_tokens, 101.0)
        track.end(index, "length", 101.0)
    assert world.sums("request_generation_tokens", "request_max_num_generation_tokens", "request_params_n") == [
        (3, 15),
        (1, 9),
        (1, 3),
    ]
    (record,) = world.records
    assert (record.request_id, record.num_output_tokens, record.temperature) == ("r", 15, 0.5)


def test_a_replay_keeps_the_time_of_the_first_schedule(world):
    track = world.start()
    track.schedule(0, 101.0, 4)
    track.schedule(0, 109.0, 0)
    track.end(0, "abort", 110.0)
    (record,) = world.records
    assert (record.sequences[0].queue_s, record.sequences[0].num_cached_tokens) == (1.0, 4)
