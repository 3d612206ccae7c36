"""Steps are added up by phase, and set against what the machine could have done."""

from __future__ import annotations

from octavo.obs.step_meter import MachineRates, StepMeter
from octavo.proto.result import StepTimings

TIMINGS = StepTimings(batch_s=0.5, forward_s=1.0, sample_s=0.25, planned_bytes=100, planned_flops=400)


def test_phases_tokens_and_costs_are_added_up():
    meter = StepMeter()
    meter.add_plan(0.125)
    for num_tokens in (1, 8, 9, 20000):
        meter.add_step(num_tokens, TIMINGS, output_s=0.0625)
    stats = meter.stats()
    assert stats.phase_s == {"plan": 0.125, "batch": 2.0, "forward": 4.0, "sample": 1.0, "output": 0.25}
    assert (stats.num_steps, stats.planned_bytes, stats.planned_flops) == (4, 400, 1600)
    assert stats.step_tokens.counts == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert stats.step_tokens.total == 20018


def test_the_share_of_the_roofline_is_that_of_the_slower_of_memory_and_arithmetic():
    meter = StepMeter(MachineRates(bytes_per_s=100.0, flops_per_s=800.0))
    meter.add_step(1, TIMINGS, output_s=0.0)
    shares = meter.stats().roofline_shares
    assert shares is not None
    assert shares.total == 0.8  # 1 s for the bytes, 0.5 s for the arithmetic, 1.25 s measured
    assert shares.counts.index(1) == 8


def test_without_rates_no_share_is_claimed():
    meter = StepMeter()
    meter.add_step(1, TIMINGS, output_s=0.0)
    assert meter.stats().roofline_shares is None


def test_a_step_without_known_cost_has_no_share():
    meter = StepMeter(MachineRates(bytes_per_s=1.0, flops_per_s=1.0))
    meter.add_step(1, StepTimings(forward_s=1.0), output_s=0.0)
    shares = meter.stats().roofline_shares
    assert shares is not None
    assert sum(shares.counts) == 0
