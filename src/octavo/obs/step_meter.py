"""Totals over steps, counted where the steps return.

Owns: the arithmetic of the totals.   Does not own: clocks, measuring what the machine can do (`MachineRates`).
Pure: values in, values out. Cost: about 2 µs a step.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.core.events import HistogramCounter
from octavo.proto.result import StepTimings
from octavo.proto.stats import (
    ROOFLINE_SHARE_BOUNDS,
    STEP_TOKENS_BOUNDS,
    StepStats,
)


@dataclass(frozen=True, slots=True)
class MachineRates:
    """What the machine can do at best, measured once."""

    bytes_per_s: float
    flops_per_s: float

    def least_s(self, num_bytes: int, num_flops: int) -> float:
        """Roofline (Williams et al. 2009): neither moving nor multiplying can be faster, and the two overlap."""
        return max(num_bytes / self.bytes_per_s, num_flops / self.flops_per_s)


class StepMeter:
    """Counts the steps of one engine. rates None: roofline shares are not counted."""

    def __init__(self, rates: MachineRates | None = None) -> None:
        self._rates = rates
        self._num_steps = 0
        self._plan_s = 0.0
        self._batch_s = 0.0
        self._forward_s = 0.0
        self._sample_s = 0.0
        self._output_s = 0.0
        self._planned_bytes = 0
        self._planned_flops = 0
        self._step_tokens = HistogramCounter(STEP_TOKENS_BOUNDS)
        self._shares = HistogramCounter(ROOFLINE_SHARE_BOUNDS)

    def add_plan(self, plan_s: float) -> None:
        """Planning took so long, whether or not a step came of it."""
        self._plan_s += plan_s

    def add_step(self, num_tokens: int, timings: StepTimings, *, output_s: float) -> None:
        """A step returned well; handling its result took output_s."""
        self._num_steps += 1
        self._batch_s += timings.batch_s
        self._forward_s += timings.forward_s
        self._sample_s += timings.sample_s
        self._output_s += output_s
        self._planned_bytes += timings.planned_bytes
        self._planned_flops += timings.planned_flops
        self._step_tokens.observe(num_tokens)
        # The plan counts the output matrix too, which is computed with the sampling.
        measured_s = timings.forward_s + timings.sample_s
        if self._rates is not None and measured_s > 0.0 and timings.planned_bytes:
            self._shares.observe(self._rates.least_s(timings.planned_bytes, timings.planned_flops) / measured_s)

    def stats(self) -> StepStats:
        """The totals as of now."""
        return StepStats(
            num_steps=self._num_steps,
            phase_s={
                "plan": self._plan_s,
                "batch": self._batch_s,
                "forward": self._forward_s,
                "sample": self._sample_s,
                "output": self._output_s,
            },
            planned_bytes=self._planned_bytes,
            planned_flops=self._planned_flops,
            step_tokens=self._step_tokens.read(),
            roofline_shares=None if self._rates is None else self._shares.read(),
        )
