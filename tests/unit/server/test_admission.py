from types import SimpleNamespace

import pytest

from octavo.fault.state import EngineState
from octavo.server.admission import Admission, QueueFullError
from octavo.server.errors import ApiError


def admission(*, requests=0, tokens=0, state=EngineState.HEALTHY):
    queue = SimpleNamespace(num_queued_requests=requests, num_queued_tokens=tokens)
    return Admission(SimpleNamespace(state=state), queue, max_requests=10, max_tokens=100)


def test_requests_are_taken_up_to_the_limit_and_not_beyond():
    admission(requests=7).check(num_requests=3, num_tokens=1)
    with pytest.raises(QueueFullError) as refused:
        admission(requests=8).check(num_requests=3, num_tokens=1)
    assert (refused.value.status, refused.value.reason) == (503, "max_num_queued_reqs")
    assert refused.value.headers["retry-after"]


def test_tokens_are_taken_up_to_the_limit_and_not_beyond():
    admission(requests=1, tokens=60).check(num_requests=1, num_tokens=40)
    with pytest.raises(QueueFullError) as refused:
        admission(requests=1, tokens=61).check(num_requests=1, num_tokens=40)
    assert refused.value.reason == "max_num_queued_tokens"


def test_a_prompt_above_the_limit_is_taken_when_nothing_waits():
    admission().check(num_requests=1, num_tokens=1000)


@pytest.mark.parametrize("state", EngineState)
def test_only_an_engine_that_will_serve_takes_requests(state):
    if state.takes_requests:
        admission(state=state).check(num_requests=1, num_tokens=1)
    else:
        with pytest.raises(ApiError) as refused:
            admission(state=state).check(num_requests=1, num_tokens=1)
        assert (refused.value.status, refused.value.headers["connection"]) == (503, "close")


def test_a_draining_server_takes_nothing():
    draining = admission()
    draining.is_draining = True
    with pytest.raises(ApiError) as refused:
        draining.check(num_requests=1, num_tokens=1)
    assert refused.value.code == "shutting_down"
