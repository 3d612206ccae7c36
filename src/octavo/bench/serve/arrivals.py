"""When requests are sent: seconds from the start of the run, known before it begins.

Owns: the arrival processes.   Does not own: waiting, or who may be in flight (load.py).
Pure; the same seed gives the same times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem

RampStrategy = Literal["linear", "exponential"]


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rate that grows (or falls) from the first request to the last."""

    strategy: RampStrategy
    start_rps: float
    end_rps: float

    def rate_at(self, progress: float) -> float:
        """Requests per second; `progress` goes from 0 at the first request to 1 at the last."""
        if self.strategy == "linear":
            return self.start_rps + (self.end_rps - self.start_rps) * progress
        return float(self.start_rps * (self.end_rps / self.start_rps) ** progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalOptions:
    """How requests arrive. Raises ConfigError for what describes no arrivals."""

    request_rate: float = math.inf
    """Requests per second; inf: all at once."""
    burstiness: float = 1.0
    """Shape of the gamma distribution of intervals: 1 is Poisson, below it bursts, inf is constant."""
    ramp: Ramp | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.request_rate > 0:
            problems.append(ConfigProblem("--request-rate", self.request_rate, "must be above 0, or inf"))
        if not self.burstiness > 0:
            problems.append(ConfigProblem("--burstiness", self.burstiness, "must be above 0, or inf"))
        if self.ramp is not None:
            for flag, value in (("start", self.ramp.start_rps), ("end", self.ramp.end_rps)):
                if not 0 < value < math.inf:
                    problems.append(ConfigProblem(f"--ramp-up-{flag}-rps", value, "must be above 0 and finite"))
            if self.request_rate != math.inf:
                remedy = "leave it out: --ramp-up-strategy sets the rate"
                problems.append(ConfigProblem("--request-rate", self.request_rate, remedy))
        if problems:
            raise ConfigError(problems)


def draw_arrivals(num_requests: int, options: ArrivalOptions, *, seed: int) -> list[float]:
    """Times of all requests, ascending.

    Without a ramp they are scaled so that the last one comes at num_requests / request_rate exactly, as vLLM's
    benchmark does: seeds then differ in pattern, not in load.
    """
    rates = _rates(num_requests, options)
    if math.isinf(options.request_rate) and options.ramp is None:
        return [0.0] * num_requests
    if math.isinf(options.burstiness):
        intervals = 1.0 / rates
    else:
        # Mean 1 / rate whatever the shape.
        scale = 1.0 / (rates * options.burstiness)
        intervals = np.random.default_rng(seed).gamma(shape=options.burstiness, scale=scale)
    times = np.cumsum(intervals)
    if options.ramp is None and num_requests and times[-1] > 0:
        times *= num_requests / options.request_rate / times[-1]
    result: list[float] = times.tolist()
    return result


def _rates(num_requests: int, options: ArrivalOptions) -> np.ndarray:
    """[num_requests] requests per second, float64."""
    if options.ramp is None:
        return np.full(num_requests, options.request_rate)
    last = max(1, num_requests - 1)
    return np.array([options.ramp.rate_at(index / last) for index in range(num_requests)])
