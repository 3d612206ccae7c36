from __future__ import annotations

import pytest
from fakes.scheduling import request

from octavo.base.errors import InvariantError
from octavo.core.kv.sequence import KvSequence
from octavo.core.queues import RequestQueue
from octavo.core.request import Request


def state(ordinal: int, *key: float) -> Request:
    made = Request(request(f"r{ordinal}"), ordinal, KvSequence(), max_model_len=64)
    made.order_key = key or (ordinal,)
    return made


def test_requests_come_in_the_order_of_their_keys() -> None:
    queue = RequestQueue()
    late, early, middle = state(2), state(0), state(1)
    for one in (late, early, middle):
        queue.add(one)
    assert list(queue) == [early, middle, late]


def test_any_request_can_be_taken_out() -> None:
    queue = RequestQueue()
    requests = [state(idx) for idx in range(5)]
    for one in requests:
        queue.add(one)
    queue.remove(requests[2])
    assert requests[2] not in queue
    assert len(queue) == 4
    assert requests[3] in queue


def test_a_request_cannot_be_in_twice() -> None:
    queue = RequestQueue()
    one = state(0)
    queue.add(one)
    with pytest.raises(InvariantError, match="already queued"):
        queue.add(one)


def test_a_request_that_is_not_there_cannot_be_removed() -> None:
    queue = RequestQueue()
    queue.add(state(0))
    with pytest.raises(InvariantError, match="not in this queue"):
        queue.remove(state(1))
