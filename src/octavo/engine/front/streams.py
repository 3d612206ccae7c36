"""The consumers' ends of the live requests of an asyncio front end.

Owns: who waits for which request, handing an output over when it is asked for, counts of what is queued.
Does not own: what an output holds (outputs.py), the engine.
Invariants: an output is made when its consumer asks, from everything that has come until then, so that a slow consumer
gets fewer and larger ones and nothing queues up; a stream is in the table from `add` until its request has ended; the
engine's ids are unique whatever ids the callers choose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from octavo.base.errors import OctavoError
from octavo.engine.input.queue_count import QueueCount
from octavo.engine.output.processor import LiveRequest
from octavo.outputs import RequestOutput
from octavo.proto.failure import Failure
from octavo.proto.output import FinishReason, RequestDelta
from octavo.proto.sampling import RequestOutputKind


class OutputStream:
    """One request, as its consumer sees it. One consumer."""

    def __init__(self, live: LiveRequest) -> None:
        self.live = live
        self.is_submitted = False
        """The present engine has it."""
        self.is_started = False
        """An engine has reported something of it."""
        self.num_deaths = 0
        """Deaths in a row, of engines that had it."""
        self.deadline_timer: asyncio.TimerHandle | None = None
        self._is_final_only = live.request.sampling.output_kind is RequestOutputKind.FINAL_ONLY
        self._error: OctavoError | None = None
        self._has_news = False
        self._is_exhausted = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def request_id(self) -> str:
        """The caller's name of it; others may have the same."""
        return self.live.request.request_id

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.live.request.prompt.token_ids)

    @property
    def is_ended(self) -> bool:
        """True: nothing more will come from any engine."""
        return self._error is not None or self.live.is_finished

    def apply(self, index: int, delta: RequestDelta, now_s: float) -> list[str]:
        """Take a delta of sequence `index`. Returns the ids of the sequences that the engine must be told to stop."""
        stopped = self.live.apply(index, delta, now_s)
        if not self._is_final_only or self.live.is_finished:
            self._tell()
        return stopped

    def end(self, reason: FinishReason, now_s: float, error: Failure | None = None) -> None:
        """End what has not ended, without the engine; the consumer gets a last output."""
        self.live.end(reason, now_s, error)
        self._tell()

    def refuse(self, error: OctavoError) -> None:
        """The engine did not take it: the consumer's wait raises this."""
        self._error = error
        self._tell()

    def _tell(self) -> None:
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> RequestOutput:
        """The next output. Raises what the engine refused the request with."""
        while not self._is_exhausted:
            if self._has_news:
                self._has_news = False
                if self._error is not None:
                    raise self._error
                output = self.live.report()
                if output is not None:
                    self._is_exhausted = output.finished
                    return output
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise StopAsyncIteration


class StreamTable:
    """The live streams, by the ids the engine knows."""

    def __init__(self, queue: QueueCount) -> None:
        self.queue = queue
        """Those of which no engine has reported anything."""
        self._streams: dict[OutputStream, None] = {}
        self._sequences: dict[str, tuple[OutputStream, int]] = {}
        self._emptied: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[OutputStream]:
        """In order of arrival; the table may change meanwhile."""
        return iter(list(self._streams))

    def __contains__(self, stream: OutputStream) -> bool:
        return stream in self._streams

    def add(self, stream: OutputStream) -> None:
        """A request begins."""
        self._streams[stream] = None
        for index, sequence in enumerate(stream.live.request.sequences):
            self._sequences[sequence.request_id] = (stream, index)
        self.queue.enter(stream.num_prompt_tokens)

    def find(self, sequence_id: str, epoch: int) -> tuple[OutputStream, int] | None:
        """(stream, index of the sequence) of an engine's id; None where that is not live, or of another epoch."""
        found = self._sequences.get(sequence_id)
        if found is None or found[0].live.request.sequences[found[1]].epoch != epoch:
            return None
        return found

    def named(self, request_ids: Iterable[str]) -> list[OutputStream]:
        """All streams that have one of these names."""
        names = set(request_ids)
        return [stream for stream in self._streams if stream.request_id in names]

    def note_started(self, stream: OutputStream) -> None:
        """An engine has reported something of it."""
        if not stream.is_started:
            stream.is_started = True
            self.queue.leave(stream.num_prompt_tokens)

    def remove(self, stream: OutputStream) -> None:
        """It has ended, or nobody waits for it any more. Idempotent."""
        if stream not in self._streams:
            return
        del self._streams[stream]
        for sequence in stream.live.request.sequences:
            del self._sequences[sequence.request_id]
        if not stream.is_started:
            self.queue.leave(stream.num_prompt_tokens)
        if stream.deadline_timer is not None:
            stream.deadline_timer.cancel()
        if not self._streams and self._emptied is not None:
            self._emptied.set()

    async def wait_until_empty(self, timeout_s: float) -> bool:
        """Until no request is live. False: time was up."""
        if not self._streams:
            return True
        self._emptied = asyncio.Event()
        try:
            await asyncio.wait_for(self._emptied.wait(), timeout_s)
        except TimeoutError:
            return False
        finally:
            self._emptied = None
        return True
