"""What counts in an overload: windows, refusals, good answers, growth of memory."""

from __future__ import annotations

import json

import pytest

from octavo.bench.serve.load import LoadResult
from octavo.bench.serve.record import RequestRecord
from octavo.bench.server.overload import OverloadResult, make_phase
from octavo.bench.server.overload_report import OverloadReport, growth_of
from octavo.bench.server.usage import Usage

MIB = 1024 * 1024


def answer(end_s, *, ttft_s=0.1, tokens=10):
    return RequestRecord(
        index=0,
        num_prompt_tokens=4,
        start_s=end_s - 1.0,
        ttft_s=ttft_s,
        latency_s=1.0,
        num_output_tokens=tokens,
        is_success=True,
        status=200,
        closed_s=end_s,
    )


def refusal(*, retry_after="1", status=503):
    return RequestRecord(
        index=0, num_prompt_tokens=4, start_s=5.0, closed_s=5.002, status=status, retry_after=retry_after, error="no"
    )


def phase(*records, num_open=0, limit_s=None, memory=()):
    result = LoadResult(
        records=list(records), duration_s=10.0, cpu_s=0.5, num_unfinished=num_open + 7, num_open=num_open
    )
    return make_phase(result, (2.0, 10.0), limit_s, [Usage(rss_bytes=size * MIB) for size in memory], [])


def test_rates_are_of_answers_that_ended_inside_the_window():
    found = phase(answer(1.9), answer(2.0), answer(9.9), answer(10.0))
    assert found.num_completed == 4
    assert found.completed_per_s == pytest.approx(2 / 8)
    assert found.good_tokens_per_s == pytest.approx(20 / 8)


def test_late_answers_are_completed_but_not_good():
    found = phase(answer(5.0), answer(6.0, ttft_s=3.0), limit_s=1.0)
    assert found.completed_per_s == pytest.approx(2 / 8)
    assert found.good_per_s == pytest.approx(1 / 8)


def test_refusals_are_told_from_failures_and_from_what_was_open():
    failed = RequestRecord(index=0, num_prompt_tokens=4, error="the server closed the connection")
    found = phase(answer(5.0), refusal(), refusal(status=429, retry_after=None), failed, num_open=3)
    assert (found.num_sent, found.num_refused, found.num_refused_with_retry_after, found.num_failed) == (7, 2, 1, 1)
    assert found.first_failure == "the server closed the connection"
    assert found.median_refusal_s == pytest.approx(0.002)
    assert found.client_cpu_share == pytest.approx(0.05)


def test_growth_is_the_slope_of_the_second_half():
    usages = [Usage(rss_bytes=size * MIB) for size in (100, 180, 200, 200, 201, 202)]
    found = growth_of(usages, 60.0)
    assert (found.start_mib, found.peak_mib) == (100, 202)
    assert found.late_mib_per_min == pytest.approx(6.0)
    assert growth_of([], 60.0).peak_mib == 0


def test_the_report_compares_good_output_with_the_peaks():
    peak = phase(*[answer(5.0)] * 10)
    overload = phase(*[answer(5.0)] * 9, *[refusal()] * 90, memory=(50, 51))
    result = OverloadResult(
        probes_before_s=[0.01], peak=peak, overload=overload, probes_after_s=[0.2, 0.01], offered_per_s=12.5
    )
    report = OverloadReport(result)
    assert report.goodput_share == pytest.approx(0.9)
    found = json.loads(json.dumps(report.as_json()))
    assert found["overload"]["front_end"] == [50, 51]
    assert "Goodput, of peak:" in str(report)
    assert "90.0 %" in str(report)
