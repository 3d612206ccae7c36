from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import ConfigError
from octavo.bench.serve.arrivals import ArrivalOptions, Ramp, draw_arrivals


def test_an_infinite_rate_sends_all_at_once():
    assert draw_arrivals(3, ArrivalOptions(), seed=0) == [0.0, 0.0, 0.0]


@given(st.integers(1, 200), st.floats(0.1, 1000), st.sampled_from([0.1, 0.5, 1.0, 3.0, math.inf]), st.integers(0, 1000))
def test_the_last_request_comes_at_count_over_rate(num_requests, rate, burstiness, seed):
    times = draw_arrivals(num_requests, ArrivalOptions(request_rate=rate, burstiness=burstiness), seed=seed)
    assert len(times) == num_requests
    assert times[-1] == pytest.approx(num_requests / rate)
    assert times == sorted(times)
    assert times[0] >= 0


@pytest.mark.parametrize("shape", [0.25, 1.0, 4.0])
def test_intervals_are_gamma_distributed_with_the_burstiness_as_shape(shape):
    times = draw_arrivals(20_000, ArrivalOptions(request_rate=10, burstiness=shape), seed=1)
    intervals = np.diff(times)
    assert np.mean(intervals) == pytest.approx(0.1, rel=0.01)
    # The coefficient of variation of a gamma distribution is 1 / sqrt(shape).
    assert np.std(intervals) / np.mean(intervals) == pytest.approx(shape**-0.5, rel=0.05)


def test_infinite_burstiness_is_even():
    assert draw_arrivals(4, ArrivalOptions(request_rate=2, burstiness=math.inf), seed=0) == [0.5, 1.0, 1.5, 2.0]


def test_the_seed_fixes_the_times():
    options = ArrivalOptions(request_rate=5)
    first, again, other = (draw_arrivals(10, options, seed=seed) for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize(("strategy", "rates"), [("linear", [1, 2.5, 4]), ("exponential", [1, 2, 4])])
def test_a_ramp_goes_from_its_first_rate_to_its_last(strategy, rates):
    options = ArrivalOptions(burstiness=math.inf, ramp=Ramp(strategy, 1, 4))
    assert np.diff([0.0, *draw_arrivals(3, options, seed=0)]) == pytest.approx([1 / rate for rate in rates])


@pytest.mark.parametrize(
    ("fields", "flag"),
    [
        ({"request_rate": 0}, "--request-rate"),
        ({"request_rate": math.nan}, "--request-rate"),
        ({"request_rate": 1, "burstiness": 0}, "--burstiness"),
        ({"ramp": Ramp("exponential", 0, 4)}, "--ramp-up-start-rps"),
        ({"ramp": Ramp("linear", 1, math.inf)}, "--ramp-up-end-rps"),
        ({"request_rate": 5, "ramp": Ramp("linear", 1, 2)}, "--request-rate"),
    ],
)
def test_what_describes_no_arrivals_is_refused_by_flag(fields, flag):
    with pytest.raises(ConfigError, match=flag):
        ArrivalOptions(**fields)
