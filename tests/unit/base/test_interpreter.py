import sys

import pytest

from octavo.base.interpreter import SWITCH_INTERVAL_S, share_finely


@pytest.fixture
def _interval_as_before():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_interval_as_before")
def test_a_thread_that_waits_gets_the_lock_ten_times_as_soon():
    sys.setswitchinterval(0.005)
    share_finely()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
