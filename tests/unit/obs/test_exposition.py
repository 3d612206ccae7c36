"""The page has vLLM's names, types, labels and buckets, and shows what was counted."""

from __future__ import annotations

import pytest
from fakes.engine_stats import engine_stats
from fakes.metrics_page import ParsedPage, parse

from octavo.obs.catalogue import ADMISSION_REJECTIONS, FRONT_END_METRICS, HTTP_REQUESTS, TTFT
from octavo.obs.counters import CounterLayout, Counters
from octavo.obs.exposition import CONTENT_TYPE, MetricsPage

ENGINE = {"model_name", "engine"}
TOKENS = "1 2 5 10 20 50 100 200 500 1000 2000"
TTFT_BOUNDS = "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560"
TOKEN_TIME = "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80"
REQUEST_TIME = "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680"

GAUGES = {
    "vllm:num_requests_running": ENGINE,
    "vllm:num_requests_waiting": ENGINE,
    "vllm:num_requests_waiting_by_reason": ENGINE | {"reason"},
    "vllm:kv_cache_usage_perc": ENGINE,
    "vllm:cache_config_info": {"engine", "block_size", "num_gpu_blocks"},
    "octavo_grammar_cache_bytes": ENGINE,
    "octavo_active_requests": set(),
    "octavo_queued_requests": set(),
    "octavo_queued_prompt_tokens": set(),
}
COUNTERS = {
    "vllm:prefix_cache_queries": ENGINE,
    "vllm:prefix_cache_hits": ENGINE,
    "vllm:num_preemptions": ENGINE,
    "vllm:prompt_tokens": ENGINE,
    "vllm:generation_tokens": ENGINE,
    "vllm:prompt_tokens_by_source": ENGINE | {"source"},
    "vllm:prompt_tokens_cached": ENGINE,
    "vllm:request_success": ENGINE | {"finished_reason"},
    "vllm:admission_rejections": {"model_name", "reason"},
    "octavo_prefix_cache_lost_tokens": ENGINE | {"reason"},
    "octavo_engine_phase_seconds": ENGINE | {"phase"},
    "octavo_step_bytes": ENGINE,
    "octavo_step_flops": ENGINE,
    "octavo_failed_steps": ENGINE,
    "octavo_request_faults": ENGINE,
    "octavo_grammar_cache_queries": ENGINE,
    "octavo_grammar_cache_hits": ENGINE,
    "octavo_engine_dropped_frames": ENGINE,
    "octavo_front_end_dropped_frames": set(),
    "http_requests": {"method", "status", "handler"},
}
HISTOGRAMS = {
    "vllm:request_prompt_tokens": (ENGINE, TOKENS),
    "vllm:request_generation_tokens": (ENGINE, TOKENS),
    "vllm:request_max_num_generation_tokens": (ENGINE, TOKENS),
    "vllm:request_params_max_tokens": (ENGINE, TOKENS),
    "vllm:request_params_n": (ENGINE, "1 2 5 10 20"),
    "vllm:iteration_tokens_total": (ENGINE, "1 8 16 32 64 128 256 512 1024 2048 4096 8192 16384"),
    "vllm:time_to_first_token_seconds": (ENGINE, TTFT_BOUNDS),
    "vllm:inter_token_latency_seconds": (ENGINE, TOKEN_TIME),
    "vllm:request_time_per_output_token_seconds": (ENGINE, TOKEN_TIME),
    "vllm:e2e_request_latency_seconds": (ENGINE, REQUEST_TIME),
    "vllm:request_queue_time_seconds": (ENGINE, REQUEST_TIME),
    "vllm:request_inference_time_seconds": (ENGINE, REQUEST_TIME),
    "vllm:request_prefill_time_seconds": (ENGINE, REQUEST_TIME),
    "vllm:request_decode_time_seconds": (ENGINE, REQUEST_TIME),
    "octavo_queue_position": (ENGINE, "0 1 2 5 10 20 50 100 200 500 1000"),
    "octavo_step_roofline_share": (ENGINE, "0.05 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"),
    "http_request_duration_seconds": ({"method", "handler"}, "0.01 0.05 0.1 0.5 1 5 10 60"),
}


def make_page(counters=None):
    return MetricsPage(
        counters or Counters.private(CounterLayout(FRONT_END_METRICS)),
        model_name="m",
        max_model_len=4096,
        cache_config={"block_size": 32, "num_gpu_blocks": 64},
    )


@pytest.fixture(scope="module")
def fresh():
    return parse(make_page(), engine_stats())


@pytest.mark.parametrize("name", GAUGES)
def test_a_gauge_exists_from_the_start_with_its_labels(fresh, name):
    assert fresh.types[name] == "gauge"
    assert fresh.labels(name) == GAUGES[name]


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_exists_at_zero_with_its_labels(fresh, name):
    assert fresh.types[name] == "counter"
    assert fresh.labels(f"{name}_total") == COUNTERS[name]
    assert {value for (its_name, _), value in fresh.samples.items() if its_name == f"{name}_total"} == {0.0}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram_exists_with_its_labels_and_buckets(fresh, name):
    labels, bounds = HISTOGRAMS[name]
    assert fresh.types[name] == "histogram"
    assert fresh.labels(f"{name}_count") == fresh.labels(f"{name}_sum") == labels
    assert [float(bound) for bound in fresh.bounds(name)] == [*map(float, bounds.split()), float("inf")]


def test_nothing_is_shown_that_the_tables_do_not_name(fresh):
    known = {*GAUGES, *COUNTERS, *HISTOGRAMS}
    others = {name for name in fresh.types if not name.startswith(("process_", "python_"))}
    assert others == known


def test_labels_are_from_closed_sets(fresh):
    values = {value for name, its in fresh.samples for label, value in its if label == "finished_reason"}
    assert values == {"stop", "length", "abort", "error", "repetition"}


def test_the_process_itself_is_shown(fresh):
    assert fresh.value("process_resident_memory_bytes") > 0
    assert fresh.value("process_open_fds") > 0


def test_values_of_the_engine_are_shown_as_they_are():
    stats = engine_stats(
        num_running=3,
        num_waiting=5,
        kv_usage=0.25,
        num_preemptions=7,
        prefix_queries=100,
        prefix_hits=40,
        prefix_losses={"last_token": 32},
        steps={"phase_s": {"plan": 0.5, "forward": 2.0}, "planned_bytes": 1000},
    )
    page = parse(make_page(), stats)
    assert page.value("vllm:num_requests_running", model_name="m", engine="0") == 3
    assert page.value("vllm:num_requests_waiting") == 5
    assert page.value("vllm:kv_cache_usage_perc") == 0.25
    assert page.value("vllm:num_preemptions_total") == 7
    assert page.value("vllm:prefix_cache_queries_total") == 100
    assert page.value("vllm:prefix_cache_hits_total") == 40
    assert page.value("octavo_prefix_cache_lost_tokens_total", reason="last_token") == 32
    assert page.value("octavo_engine_phase_seconds_total", phase="forward") == 2.0
    assert page.value("octavo_step_bytes_total") == 1000


def test_every_engine_has_a_series_of_its_own():
    page = parse(make_page(), engine_stats(num_running=1), engine_stats(engine_idx=1, num_running=2))
    assert page.value("vllm:num_requests_running", engine="0") == 1
    assert page.value("vllm:num_requests_running", engine="1") == 2


def test_an_engine_that_does_not_answer_leaves_the_counts_of_front_ends():
    counters = Counters.private(CounterLayout(FRONT_END_METRICS))
    counters.add(ADMISSION_REJECTIONS, 2, ("max_num_queued_reqs",))
    page = parse(make_page(counters))
    assert page.value("vllm:admission_rejections_total", reason="max_num_queued_reqs", model_name="m") == 2
    assert "vllm:num_requests_running" not in {name for name, _ in page.samples}


def test_buckets_are_cumulative_and_values_above_the_last_are_in_the_infinite_one():
    counters = Counters.private(CounterLayout(FRONT_END_METRICS))
    for value in (0.001, 0.0011, 3000.0):
        counters.observe(TTFT, value)
    page = parse(make_page(counters), engine_stats())
    name = "vllm:time_to_first_token_seconds"
    counts = [page.value(f"{name}_bucket", le=bound) for bound in page.bounds(name)]
    assert counts[:2] == [1.0, 2.0]
    assert counts[-2:] == [2.0, 3.0]
    assert page.value(f"{name}_count") == 3
    assert page.value(f"{name}_sum") == pytest.approx(3000.0021)


def test_the_page_is_in_text_format_0_0_4():
    assert "version=0.0.4" in CONTENT_TYPE
    text = make_page().render([engine_stats()]).decode()
    assert ParsedPage(text).types
    assert "\n# TYPE vllm:prompt_tokens_total counter\n" in text
    assert "_created" not in text


def test_http_requests_are_counted_by_class_of_status():
    counters = Counters.private(CounterLayout(FRONT_END_METRICS))
    counters.add(HTTP_REQUESTS, 1, ("POST", "4xx", "/v1/completions"))
    page = parse(make_page(counters))
    assert page.value("http_requests_total", method="POST", status="4xx", handler="/v1/completions") == 1
