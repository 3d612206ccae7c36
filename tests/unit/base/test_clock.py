import pytest

from octavo.base.clock import ManualClock, MonotonicClock


def test_manual_clock_moves_only_when_told():
    clock = ManualClock(5.0)
    assert clock.now_s() == clock.now_s() == 5.0
    clock.advance(1.5)
    assert clock.now_s() == 6.5


def test_manual_clock_never_goes_back():
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock().advance(-1)


def test_monotonic_clock_does_not_decrease():
    clock = MonotonicClock()
    assert clock.now_s() <= clock.now_s()
