from __future__ import annotations

from fakes.scheduling import request

from octavo.core.deadlines import DeadlineQueue
from octavo.core.kv.sequence import KvSequence
from octavo.core.request import Request
from octavo.core.state import RequestStatus


def due(deadline_s: float | None, ordinal: int = 0) -> Request:
    return Request(request(deadline_s=deadline_s), ordinal, KvSequence(), max_model_len=64)


def test_requests_expire_earliest_first() -> None:
    queue = DeadlineQueue()
    late, early = due(2.0, 0), due(1.0, 1)
    queue.add(late)
    queue.add(early)
    assert queue.take_expired(3.0) == [early, late]
    assert queue.take_expired(3.0) == []


def test_a_deadline_itself_is_still_in_time() -> None:
    queue = DeadlineQueue()
    queue.add(due(1.0))
    assert queue.take_expired(1.0) == []


def test_requests_without_a_deadline_are_not_kept() -> None:
    queue = DeadlineQueue()
    queue.add(due(None))
    assert len(queue) == 0


def test_finished_requests_do_not_expire() -> None:
    queue = DeadlineQueue()
    done = due(1.0)
    queue.add(done)
    done.move_to(RequestStatus.FINISHED_STOPPED)
    assert queue.take_expired(2.0) == []


def test_finished_requests_do_not_pile_up() -> None:
    queue = DeadlineQueue()
    for ordinal in range(1000):
        one = due(1e9, ordinal)
        queue.add(one)
        one.move_to(RequestStatus.FINISHED_STOPPED)
    assert len(queue) <= 64
