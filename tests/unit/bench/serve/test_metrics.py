from __future__ import annotations

import pytest

from octavo.base.errors import ConfigError
from octavo.bench.serve.metrics import parse_goodput, summarize
from octavo.bench.serve.record import RequestRecord


def record(start_s, ttft_s, itls_s, *, num_output, queue_s=0.0, num_prompt=10):
    return RequestRecord(
        index=0,
        num_prompt_tokens=num_prompt,
        arrival_s=start_s - queue_s,
        start_s=start_s,
        ttft_s=ttft_s,
        itls_s=itls_s,
        latency_s=ttft_s + sum(itls_s),
        num_output_tokens=num_output,
        is_success=True,
    )


def failed():
    return RequestRecord(index=0, num_prompt_tokens=999, start_s=0.0, ttft_s=50.0, itls_s=[9.0], error="no")


def summary(records, *, limits_s=None, duration_s=10.0, count_tokens=None):
    return summarize(
        records, duration_s=duration_s, goodput_limits_s=limits_s or {}, count_tokens=count_tokens or (lambda _: 77)
    )


def test_distributions_are_of_the_successful_only():
    found = summary(
        [
            record(100.0, 0.1, [0.2, 0.4], num_output=3),
            failed(),
            record(101.0, 0.3, [], num_output=1, queue_s=0.5),
        ]
    )
    assert (found.num_completed, found.num_failed) == (2, 1)
    assert (found.num_input_tokens, found.num_output_tokens, found.output_lens) == (20, 4, [3, 0, 1])
    ttft, tpot, itl, e2el = (found.distributions[name] for name in ("ttft", "tpot", "itl", "e2el"))
    assert ttft.mean_ms == pytest.approx(200)
    assert ttft.std_ms == pytest.approx(100)
    assert tpot.values_s.tolist() == pytest.approx([0.3])
    assert itl.median_ms == pytest.approx(300)
    assert itl.percentile_ms(75) == pytest.approx(350)
    assert e2el.values_s.tolist() == pytest.approx([0.7, 0.3])
    assert found.distributions["client_queue_time"].values_s.tolist() == [0.0, 0.5]
    assert found.distributions["e2el_including_client_queue"].values_s.tolist() == pytest.approx([0.7, 0.8])
    assert found.per_s(found.num_completed) == 0.2


def test_goodput_counts_requests_within_all_limits():
    good, slow_first, slow_rest = (
        record(0.0, ttft_s, [itl_s], num_output=2) for ttft_s, itl_s in ((0.1, 0.05), (0.5, 0.05), (0.1, 0.2))
    )
    one_token = record(0.0, 0.1, [], num_output=1)
    records = [good, slow_first, slow_rest, one_token, failed()]
    assert summary(records, limits_s=parse_goodput(["ttft:200", "tpot:50.1"])).num_good == 2
    assert summary(records, limits_s=parse_goodput(["ttft:200"])).num_good == 3
    assert summary(records, limits_s=parse_goodput(["e2el:0"])).num_good == 0
    assert summary(records).num_good == 0


@pytest.mark.parametrize("pair", ["ttft", "ttft:x", "ttft:-1", "ttft:nan", "itl:5", ":5"])
def test_a_goodput_limit_of_another_form_is_refused(pair):
    with pytest.raises(ConfigError, match="--goodput"):
        parse_goodput([pair])


def test_the_peak_of_tokens_is_of_whole_seconds_from_the_first_request():
    records = [record(50.0, 0.1, [0.1, 1.0, 0.1], num_output=4), record(50.9, 0.2, [0.1], num_output=2)]
    # Seconds 50 to 51: two tokens; 51 to 52: two of each.
    assert summary(records).peak_output_tokens_per_s == 4


def test_tokens_that_came_several_to_a_chunk_count_each():
    assert summary([record(0.0, 0.1, [0.1], num_output=10)]).peak_output_tokens_per_s == 10


def test_the_peak_of_requests_is_of_those_open_at_one_moment():
    records = [record(start_s, 0.25, [], num_output=1) for start_s in (0.0, 0.25, 0.5)]
    assert summary(records).peak_concurrent_requests == 1
    assert summary([*records, record(0.3, 1.0, [], num_output=1)]).peak_concurrent_requests == 2


def test_tokens_are_counted_here_when_the_server_does_not():
    uncounted = record(0.0, 0.1, [0.3], num_output=None)
    found = summary([uncounted], count_tokens=lambda one: 4 if one is uncounted else 0)
    assert found.num_output_tokens == 4
    assert found.distributions["tpot"].values_s.tolist() == pytest.approx([0.1])


@pytest.mark.parametrize("records", [[], [failed()]])
def test_without_a_success_all_is_zero(records):
    found = summary(records, limits_s={"ttft": 1.0}, duration_s=0.0)
    assert (found.num_completed, found.peak_output_tokens_per_s, found.peak_concurrent_requests) == (0, 0.0, 0)
    assert found.distributions["ttft"].mean_ms == found.distributions["itl"].percentile_ms(99) == 0.0
    assert found.per_s(5) == 0.0
