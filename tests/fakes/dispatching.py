"""A dispatcher with hands to play its engine."""

from __future__ import annotations

import asyncio

from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.clock import ManualClock
from octavo.engine.front.dispatch import Dispatcher
from octavo.engine.front.streams import OutputStream
from octavo.engine.input.processor import PreparedRequest
from octavo.engine.input.prompts import Prompt
from octavo.engine.output.processor import LiveRequest
from octavo.engine.process.supervisor import RunningEngine
from octavo.proto.codec import ProtocolError
from octavo.proto.messages import Add, Deltas, Load
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.sampling import RequestOutputKind, SamplingParams

LOAD = Load(num_steps=1, num_running=0, num_waiting=0)


class FakeLink:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []
        self.is_narrow = False

    def send(self, message):
        if self.is_narrow and isinstance(message, Add):
            raise ProtocolError("too large")
        self.sent.append(message)


class FakeWatch:
    def __init__(self):
        self.num_begun = 0
        self.loads = []

    def work_began(self):
        self.num_begun += 1

    def heard(self, load):
        self.loads.append(load)


class Harness:
    """A dispatcher with an engine that is up, and hands to play the engine."""

    def __init__(self, *, replay=True, tokenizer=None):
        self.tokenizer = ByteTokenizer() if tokenizer is None else tokenizer
        self.clock = ManualClock(50.0)
        self.link, self.watch = FakeLink(), FakeWatch()
        self.dispatcher = Dispatcher(self.clock, replay=replay)
        self.dispatcher.attach(self.link, self.watch)
        self.num_streams = 0
        self.num_engines = 0
        self.up()

    def up(self):
        self.dispatcher.engine_up(
            RunningEngine(address="", incarnation=self.num_engines, config=None, phases={"weights": 1.0})
        )
        self.num_engines += 1

    def die(self, *, is_in_row=True):
        self.dispatcher.engine_down("killed", is_in_row=is_in_row)
        self.dispatcher.engine_restarting()

    def open(self, *, name="r", deadline_s=None, **params):
        given = {"output_kind": RequestOutputKind.DELTA, "max_tokens": 20} | params
        sampling = SamplingParams(**given)
        prefix = f"0-x-{self.num_streams}"
        self.num_streams += 1
        sequences = [
            NewRequest(
                request_id=prefix if sampling.n == 1 else f"{index}_{prefix}",
                prompt_token_ids=[1, 2, 3],
                sampling=sampling,
                max_tokens=20,
                seed=0,
                deadline_s=deadline_s,
            )
            for index in range(sampling.n)
        ]
        prepared = PreparedRequest(
            request_id=name, prompt=Prompt(token_ids=[1, 2, 3]), sampling=sampling, sequences=sequences
        )
        stream = OutputStream(LiveRequest(prepared, self.tokenizer))
        self.dispatcher.open(stream)
        return stream

    def give(self, stream, text="", *, index=0, epoch=None, incarnation=None, **fields):
        sequence = stream.live.request.sequences[index]
        delta = RequestDelta(
            request_id=sequence.request_id,
            epoch=sequence.epoch if epoch is None else epoch,
            token_ids=list(text.encode()),
            **fields,
        )
        number = self.num_engines - 1 if incarnation is None else incarnation
        self.dispatcher.receive(Deltas(incarnation=number, deltas=[delta], load=LOAD))

    def take_sent(self):
        sent, self.link.sent = self.link.sent, []
        return sent


async def all_of(stream):
    """(text, finish reason, error) of a stream of one sequence."""
    text, end = "", None
    async for output in stream:
        for part in output.outputs:
            text += part.text
            end = part
    return text, end.finish_reason, end.error


def scenario(function):
    """A test whose body runs on an event loop."""

    def run_it():
        asyncio.run(function())

    run_it.__name__ = function.__name__
    return run_it
