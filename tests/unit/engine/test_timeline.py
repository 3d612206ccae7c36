from __future__ import annotations

import pytest

from octavo.base.clock import ManualClock
from octavo.engine.timeline import Timeline


def test_phases_sum_to_the_time_that_passed():
    clock = ManualClock(5.0)
    timeline = Timeline(clock)
    clock.advance(0.5)
    timeline.mark("weights")
    clock.advance(0.25)
    timeline.mark("warm-up")
    clock.advance(1.0)
    timeline.mark("weights")
    assert timeline.phases == {"weights": 1.5, "warm-up": 0.25}
    assert timeline.total_s == pytest.approx(1.75)
    assert str(timeline) == "1.75 s (weights 1.50, warm-up 0.25)"
