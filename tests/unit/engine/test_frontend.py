"""Requests in, outputs out, and nothing left behind however it ends."""

from __future__ import annotations

import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.clock import ManualClock
from octavo.base.errors import CapacityError, EngineDeadError
from octavo.engine.frontend import FrontEnd
from octavo.engine.input.defaults import EndTokens
from octavo.engine.input.processor import InputProcessor, ModelDefaults
from octavo.engine.input.prompts import Prompt
from octavo.engine.input.validate import RequestLimits
from octavo.engine.output.processor import OutputProcessor
from octavo.proto.output import RequestDelta
from octavo.proto.sampling import SamplingParams


class FakeClient:
    """Gives each request the letter x until it is aborted or has max_tokens of them."""

    def __init__(self, *, refuse=()):
        self.live = {}
        self.refuse, self.aborted, self.ended = set(refuse), [], []
        self.is_dead = False

    @property
    def has_work(self):
        return bool(self.live or self.ended)

    def add(self, request):
        if request.request_id in self.refuse:
            raise CapacityError("never fits")
        self.live[request.request_id] = request.max_tokens

    def abort(self, request_ids):
        for request_id in request_ids:
            self.aborted.append(request_id)
            if self.live.pop(request_id, None) is not None:
                self.ended.append(RequestDelta(request_id=request_id, epoch=0, finish_reason="abort"))

    def receive(self):
        if self.is_dead:
            raise EngineDeadError("gone")
        deltas, self.ended = self.ended, []
        for request_id in list(self.live):
            self.live[request_id] -= 1
            is_last = self.live[request_id] == 0
            reason = "length" if is_last else None
            deltas.append(RequestDelta(request_id=request_id, epoch=0, token_ids=[120], finish_reason=reason))
            if is_last:
                del self.live[request_id]
        return deltas


class Harness:
    def __init__(self, **client):
        self.client = FakeClient(**client)
        self.front_end = FrontEnd(self.client, OutputProcessor(ByteTokenizer()), ManualClock())
        self.inputs = InputProcessor(
            ByteTokenizer(),
            RequestLimits(vocab_size=258, max_model_len=64, max_logprobs=20),
            ModelDefaults(sampling=SamplingParams(), end_tokens=EndTokens(eos=())),
            engine_seed=0,
        )

    def request(self, name="r", **params):
        params = SamplingParams(**({"max_tokens": 3} | params))
        return self.inputs.prepare(Prompt(token_ids=[1]), params, request_id=name, arrival_s=0.0)


def test_driving_requests_yields_outputs_until_all_have_ended():
    harness = Harness()
    texts = [o.outputs[0].text for o in harness.front_end.drive([harness.request(), harness.request("s")])]
    assert texts == ["x", "x", "xx", "xx", "xxx", "xxx"]
    assert not harness.front_end.has_work


def test_a_stop_string_aborts_the_sequence_in_the_engine():
    harness = Harness()
    (_, last) = harness.front_end.drive([harness.request(stop="xx", max_tokens=50)])
    assert (last.outputs[0].text, last.outputs[0].stop_reason) == ("", "xx")
    assert harness.client.aborted == ["r"]
    assert not harness.front_end.has_work


def test_a_request_that_is_refused_leaves_nothing_behind():
    harness = Harness(refuse=["1_r"])
    with pytest.raises(CapacityError):
        harness.front_end.submit(harness.request(n=2))
    assert harness.client.live == {}
    assert list(harness.front_end.drive([harness.request()]))


def test_closing_the_iterator_aborts_all():
    harness = Harness()
    outputs = harness.front_end.drive([harness.request(), harness.request("s")])
    next(outputs)
    outputs.close()
    assert sorted(harness.client.aborted) == ["r", "s"]
    assert not harness.front_end.has_work


def test_an_aborted_request_ends_with_an_output_that_says_so():
    harness = Harness()
    harness.front_end.submit(harness.request(n=2, seed=1, temperature=1.0))
    harness.front_end.step()
    harness.front_end.abort(["r", "unknown"])
    (output,) = harness.front_end.step()
    assert [completion.finish_reason for completion in output.outputs] == ["abort", "abort"]
    assert output.finished


def test_a_dead_engine_is_reported_as_it_is():
    harness = Harness()
    outputs = harness.front_end.drive([harness.request()])
    next(outputs)
    harness.client.is_dead = True
    with pytest.raises(EngineDeadError, match="gone"):
        next(outputs)
