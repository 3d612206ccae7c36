"""Shares and medians of what serving adds."""

from __future__ import annotations

import json
import os

import pytest

from octavo.bench.server.cost_report import CostReport, summarize_pairs
from octavo.bench.server.serving_cost import CostResult, OfflineRun, Pairs, ServedRun
from octavo.bench.server.usage import ServerUsage, Usage

NUM_CORES = len(os.sched_getaffinity(0))


def served(seconds, *, client_cpu_s=0.0, front_end_cpu_s=0.0, token_s=0.012):
    return ServedRun(
        seconds=seconds,
        num_tokens=1000,
        num_chunks=990,
        ttft_s=0.1,
        token_s=token_s,
        client_cpu_s=client_cpu_s,
        front_end_cpu_s=front_end_cpu_s,
        engine_cpu_s=seconds,
    )


def offline(seconds, token_s=0.010):
    return OfflineRun(seconds=seconds, num_tokens=1000, token_s=token_s)


def test_a_share_is_of_the_same_round():
    # The machine slows down between the rounds: served and offline alike.
    summary = summarize_pairs(
        Pairs([served(2.0), served(4.0), served(6.0)], [offline(1.0), offline(2.0), offline(3.0)])
    )
    assert summary.served_share == pytest.approx(0.5)
    assert summary.served_tokens_per_s == pytest.approx(250)
    assert summary.offline_tokens_per_s == pytest.approx(500)


def test_cpu_that_is_left_out_counts_as_spread_over_all_cores():
    pairs = Pairs([served(2.0, client_cpu_s=0.5 * NUM_CORES, front_end_cpu_s=0.5 * NUM_CORES)], [offline(1.0)])
    summary = summarize_pairs(pairs)
    assert summary.share_without_client == pytest.approx(1 / 1.5)
    assert summary.share_without_client_and_front_end == pytest.approx(1.0)


def test_costs_are_per_token():
    summary = summarize_pairs(Pairs([served(2.0, client_cpu_s=0.01, front_end_cpu_s=0.05)], [offline(1.0)]))
    assert summary.front_end_us_per_token == pytest.approx(50)
    assert summary.client_us_per_token == pytest.approx(10)
    assert summary.added_ms_per_token == pytest.approx(2.0)


def test_the_report_has_all_figures_as_text_and_as_json():
    mib = 1024 * 1024
    usage = ServerUsage(Usage(rss_bytes=90 * mib, peak_rss_bytes=100 * mib), Usage(rss_bytes=500 * mib))
    result = CostResult(
        ready_s=1.5,
        first_token_s=1.6,
        idle_cpu_s=0.004,
        idle_s=10.0,
        pairs={1: Pairs([served(2.0)], [offline(1.9)]), 64: Pairs([served(2.0)], [offline(1.0)])},
        usage=usage,
    )
    report = CostReport(result)
    found = json.loads(json.dumps(report.as_json()))
    assert found["idle_cpu_ms"] == pytest.approx(4.0)
    assert found["front_end_peak_rss_mib"] == pytest.approx(100)
    assert found["concurrency"]["64"]["served_share"] == pytest.approx(0.5)
    assert found["runs"]["1"]["served"][0]["num_chunks"] == 990
    text = str(report)
    assert "- 1 stream -" in text
    assert "- 64 streams -" in text
    assert "50.0 %" in text
