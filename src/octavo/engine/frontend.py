"""The front end of one engine: checked requests in, outputs out, in one thread.

Owns: the order of things between input, engine and output.   Does not own: any of the three.
Invariant: after `abort_all` the engine is as idle as if nothing had been submitted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from octavo.base.clock import Clock
from octavo.base.errors import EngineDeadError
from octavo.engine.client import EngineClient
from octavo.engine.input.processor import PreparedRequest
from octavo.engine.interrupt import DeferredInterrupt
from octavo.engine.output.processor import OutputProcessor
from octavo.outputs import RequestOutput


class FrontEnd:
    """Drives an engine through its client."""

    def __init__(self, client: EngineClient, outputs: OutputProcessor, clock: Clock) -> None:
        self._client = client
        self._outputs = outputs
        self._clock = clock

    @property
    def client(self) -> EngineClient:
        """The engine behind this front end."""
        return self._client

    @property
    def has_work(self) -> bool:
        """True while a request or a step in flight is unfinished."""
        return self._outputs.num_live > 0 or self._client.has_work

    def now_s(self) -> float:
        """The clock all times of requests are on."""
        return self._clock.now_s()

    def submit(self, request: PreparedRequest) -> None:
        """Start a request. Raises ValidationError or CapacityError, and then nothing of it remains."""
        self._outputs.add(request)
        try:
            for sequence in request.sequences:
                self._client.add(sequence)
        except BaseException:
            self._client.abort([sequence.request_id for sequence in request.sequences])
            self._outputs.forget([request.request_id], was_refused=True)
            raise

    def step(self) -> list[RequestOutput]:
        """Wait for progress; the outputs that are due. Raises EngineDeadError."""
        processed = self._outputs.process(self._client.receive(), self._clock.now_s())
        if processed.stopped_ids:
            self._client.abort(processed.stopped_ids)
        return processed.outputs

    def drive(self, requests: Iterable[PreparedRequest]) -> Generator[RequestOutput]:
        """Run requests to their end, yielding outputs as they are due.

        Whatever ends this early (Ctrl-C between two steps, an error, the caller closing the iterator) aborts them all
        and leaves the engine idle. Raises what `submit` and `step` raise, KeyboardInterrupt.
        """
        with DeferredInterrupt() as interrupt:
            try:
                for request in requests:
                    self.submit(request)
                while self.has_work:
                    yield from self.step()
                    interrupt.check()
            except EngineDeadError:
                raise
            except BaseException:
                self.abort_all()
                raise

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests; their last output comes with finish_reason "abort"."""
        self._client.abort(self._outputs.sequence_ids(request_ids))

    def abort_all(self) -> None:
        """End every request without an output, and run the engine until it is idle."""
        self._client.abort(self._outputs.sequence_ids())
        self._outputs.forget_all()
        while self._client.has_work:
            self._client.receive()
