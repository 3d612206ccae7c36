"""One turn of the engine's loop: what comes in, what goes out, and to whom."""

from __future__ import annotations

import pytest

from octavo.base.errors import CapacityError, EngineDeadError, ValidationError
from octavo.engine.loop import EngineLoop
from octavo.proto.codec import ProtocolError
from octavo.proto.messages import Abort, Add, Deltas, GetStats, Ping, Pong, Rejected, ResetPrefixCache, ResetReply
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.sampling import SamplingParams


def request(request_id, **fields):
    given = {"prompt_token_ids": [1], "sampling": SamplingParams(), "max_tokens": 4, "seed": 0}
    return NewRequest(request_id=request_id, **(given | fields))


class FakeCore:
    """Takes requests; each `advance` gives what the test has put into `gains`."""

    num_steps_done, num_running, num_waiting = 5, 1, 2
    is_waiting_for_step = True

    def __init__(self):
        self.added = []
        self.aborted = []
        self.gains = []
        self.refusal = None

    @property
    def has_work(self):
        return bool(self.added)

    def add(self, new):
        if self.refusal is not None:
            raise self.refusal
        self.added.append(new)

    def abort(self, request_ids):
        self.aborted += request_ids
        clients = {new.request_id: new.client_idx for new in self.added}
        return [
            RequestDelta(request_id=i, epoch=0, finish_reason="abort", client_idx=clients[i])
            for i in request_ids
            if i in clients
        ]

    def advance(self):
        gains, self.gains = self.gains, []
        return gains

    def reset_prefix_cache(self, *, reset_running):
        return reset_running

    def stats(self):
        raise EngineDeadError("the core cannot go on")


class FakePort:
    """Gives each turn's messages in `incoming`; the loop is stopped when they are used up."""

    def __init__(self, *incoming, max_deltas=100):
        self.incoming = list(incoming)
        self.sent = []
        self.waits = []
        self.num_wakes = 0
        self.num_dropped_frames = 0
        self.max_deltas = max_deltas
        self.loop = None

    def receive(self):
        return self.incoming.pop(0)

    def send(self, client_idx, message):
        if isinstance(message, Deltas) and len(message.deltas) > self.max_deltas:
            raise ProtocolError("too large")
        self.sent.append((client_idx, message))

    def wait(self, timeout_s):
        self.waits.append(timeout_s)
        if not self.incoming:
            self.loop.stop()

    def wake(self):
        self.num_wakes += 1


def run(core, port):
    port.loop = EngineLoop(core, port, incarnation=7)
    port.loop.run()
    return port.sent


def test_a_request_is_taken_in_under_the_front_end_it_came_from():
    core = FakeCore()
    run(core, FakePort([(3, Add(request=request("a", client_idx=9)))]))
    assert [new.client_idx for new in core.added] == [3]


@pytest.mark.parametrize(
    ("error", "kind", "parameter"),
    [
        (ValidationError("bad", parameter="prompt"), "validation", "prompt"),
        (CapacityError("large"), "capacity", None),
        (RuntimeError("bug"), "internal", None),
    ],
)
def test_an_error_of_one_request_is_answered_to_it_alone(error, kind, parameter):
    core = FakeCore()
    core.refusal = error
    port = FakePort([(1, Add(request=request("a", epoch=4))), (2, Ping(call_id=8))])
    (client_idx, rejected), (_, pong) = run(core, port)
    assert isinstance(rejected, Rejected)
    assert (client_idx, rejected.request_id, rejected.epoch) == (1, "a", 4)
    assert (rejected.kind, rejected.parameter) == (kind, parameter)
    assert str(error) in rejected.message
    assert isinstance(pong, Pong)


def test_each_front_end_gets_one_message_with_its_deltas():
    core = FakeCore()
    core.gains = [RequestDelta(request_id=i, epoch=0, client_idx=c) for i, c in (("a", 0), ("b", 1), ("c", 0))]
    sent = run(core, FakePort([]))
    assert [(c, [d.request_id for d in m.deltas]) for c, m in sent] == [(0, ["a", "c"]), (1, ["b"])]
    message = sent[0][1]
    assert message.incarnation == 7
    assert (message.load.num_steps, message.load.num_running, message.load.num_waiting) == (5, 1, 2)


def test_an_abort_is_answered_with_the_last_deltas():
    core = FakeCore()
    ((client_idx, message),) = run(
        core, FakePort([(1, Add(request=request("a")))], [(1, Abort(request_ids=["a", "z"]))])
    )
    assert (client_idx, [d.finish_reason for d in message.deltas]) == (1, ["abort"])


def test_calls_are_answered_with_their_ids():
    ((_, reply),) = run(FakeCore(), FakePort([(0, ResetPrefixCache(call_id=5, reset_running=True))]))
    assert reply == ResetReply(call_id=5, is_done=True)


def test_the_requests_of_a_dead_front_end_are_ended_without_an_answer():
    core = FakeCore()
    port = FakePort([(0, Add(request=request("a"))), (1, Add(request=request("b")))], [])
    port.loop = EngineLoop(core, port, incarnation=0)
    port.loop.drop_client(1)
    port.loop.run()
    assert (core.aborted, port.sent, port.num_wakes) == (["b"], [], 2)


def test_a_message_that_is_too_large_is_split():
    core = FakeCore()
    core.gains = [RequestDelta(request_id=str(i), epoch=0) for i in range(5)]
    sent = run(core, FakePort([], max_deltas=2))
    assert [delta.request_id for _, message in sent for delta in message.deltas] == ["0", "1", "2", "3", "4"]
    assert max(len(message.deltas) for _, message in sent) == 2


def test_a_delta_that_is_too_large_alone_ends_its_request_with_an_error():
    class NarrowPort(FakePort):
        def send(self, client_idx, message):
            if any(delta.token_ids for delta in message.deltas):
                raise ProtocolError("too large")
            super().send(client_idx, message)

    core = FakeCore()
    core.gains = [RequestDelta(request_id="a", epoch=3, token_ids=[1])]
    ((_, message),) = run(core, NarrowPort([]))
    (delta,) = message.deltas
    assert (delta.request_id, delta.epoch, delta.finish_reason) == ("a", 3, "error")
    assert core.aborted == ["a"]


def test_it_waits_without_end_for_a_step_and_shortly_for_time_to_pass():
    core = FakeCore()
    port = FakePort([(0, Add(request=request("a")))])
    run(core, port)
    core.is_waiting_for_step = False
    late = FakePort([])
    run(core, late)
    assert (port.waits, len(late.waits), late.waits[0] is not None) == ([None], 1, True)


def test_what_the_core_cannot_go_on_after_ends_the_loop():
    with pytest.raises(EngineDeadError):
        run(FakeCore(), FakePort([(0, GetStats(call_id=1))]))
