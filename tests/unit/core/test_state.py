from __future__ import annotations

import pytest

from octavo.base.errors import InvariantError
from octavo.core.state import STATUS_OF_REASON, TRANSITIONS, RequestStatus, check_transition

ENDS = [status for status in RequestStatus if status.is_finished]


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(RequestStatus)


@pytest.mark.parametrize("end", ENDS)
def test_nothing_follows_an_end(end: RequestStatus) -> None:
    for status in RequestStatus:
        with pytest.raises(InvariantError, match=end.name):
            check_transition(end, status)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("status", [s for s in RequestStatus if not s.is_finished])
def test_a_request_may_end_from_any_other_state(status: RequestStatus, end: RequestStatus) -> None:
    check_transition(status, end)


def test_a_waiting_request_cannot_be_preempted() -> None:
    with pytest.raises(InvariantError):
        check_transition(RequestStatus.WAITING, RequestStatus.PREEMPTED)


def test_every_finish_reason_has_its_own_state() -> None:
    assert sorted(STATUS_OF_REASON.values()) == sorted(ENDS)
