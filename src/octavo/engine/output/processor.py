"""From the engine's deltas to RequestOutputs.

Owns: the live requests of a front end, the n sequences of each, times, what was already reported.
Does not own: text of one sequence (continuation.py), the engine.
Invariants: a request is live from `add` until its last sequence ended or `forget`; exactly one output of it has
finished=True; deltas of unknown requests (aborted, replayed under another epoch) change nothing; whatever fails while
a delta becomes text ends the request that it is for, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from octavo.base.errors import ValidationError
from octavo.base.log import get_logger
from octavo.engine.input.processor import PreparedRequest
from octavo.engine.output.continuation import Continuation, OutputTokenizer, name_logprobs
from octavo.loading.tokenizer import is_panic
from octavo.obs.request_meter import RequestFacts, RequestMeter, RequestTrack
from octavo.outputs import PositionLogprobs, RequestMetrics, RequestOutput
from octavo.proto.failure import Failure
from octavo.proto.output import FinishReason, RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.result import TokenLogprobs
from octavo.proto.sampling import RequestOutputKind

logger = get_logger(__name__)

OUTPUT_FAULT = Failure("internal", "the tokens of this request could not be turned into text; the log says why")


@dataclass(frozen=True, slots=True)
class ProcessedDeltas:
    """What a batch of deltas came to."""

    outputs: list[RequestOutput]
    stopped_ids: list[str] = field(default_factory=list)
    """Sequences that ended here, by a stop string or a fault; the engine has yet to be told."""


class LiveRequest:
    """A request whose outputs are still coming in."""

    def __init__(
        self, request: PreparedRequest, tokenizer: OutputTokenizer | None, track: RequestTrack | None = None
    ) -> None:
        self.request = request
        self.continuations = [Continuation(i, request.sampling, tokenizer) for i in range(len(request.sequences))]
        self._tokenizer = tokenizer if request.sampling.detokenize else None
        self._metrics = RequestMetrics(arrival_time=request.arrival_s)
        self._prompt_logprobs: list[PositionLogprobs | None] = [None]
        self._num_prompt_logprobs_reported = 0
        self._num_prompt_logprobs_of_epoch = 0
        self._num_cached_tokens: int | None = None
        self._track = track

    @property
    def is_finished(self) -> bool:
        """True: all sequences have ended."""
        return all(continuation.finish_reason is not None for continuation in self.continuations)

    def apply(self, index: int, delta: RequestDelta, now_s: float) -> list[str]:
        """Add a delta of sequence `index`. Returns the ids of the sequences that the engine must be told to stop.

        A fault on the way (a panic of the tokenizer, a bug) ends the whole request with an error; it is logged.
        """
        try:
            must_stop = self._take(index, delta, now_s)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            logger.exception("request %s: a delta could not be turned into output", self.request.request_id)
            return self._fail(now_s)
        return [self.request.sequences[index].request_id] if must_stop else []

    def _take(self, index: int, delta: RequestDelta, now_s: float) -> bool:
        """Add a delta. True: a stop string ended the sequence and the engine does not know it."""
        metrics = self._metrics
        if delta.scheduled_s is not None:
            if metrics.first_scheduled_time is None:
                metrics.first_scheduled_time = delta.scheduled_s
            if index == 0 and self._num_cached_tokens is None:
                self._num_cached_tokens = delta.num_cached_tokens
        if delta.token_ids:
            metrics.last_token_time = now_s
            if metrics.first_token_time is None:
                metrics.first_token_time = now_s
        if delta.prompt_logprobs:
            self._add_prompt_logprobs(delta.prompt_logprobs)
        continuation = self.continuations[index]
        must_stop = continuation.apply(delta)
        if self._track is not None:
            self._note(self._track, index, delta, now_s)
        if continuation.finish_reason is not None and metrics.finished_time is None and self.is_finished:
            metrics.finished_time = now_s
        return must_stop

    def _note(self, track: RequestTrack, index: int, delta: RequestDelta, now_s: float) -> None:
        """Count what a delta brought; the continuation has taken it."""
        if delta.scheduled_s is not None:
            track.schedule(index, delta.scheduled_s, delta.num_cached_tokens)
        if delta.token_ids:
            track.add_tokens(index, len(delta.token_ids), now_s)
        reason = self.continuations[index].finish_reason
        if reason is not None:
            track.end(index, reason, now_s)

    def _fail(self, now_s: float) -> list[str]:
        """End what has not ended, without another look at its text. Returns the ids of those sequences."""
        failed = []
        for index, continuation in enumerate(self.continuations):
            if continuation.finish_reason is None:
                continuation.fail(OUTPUT_FAULT)
                failed.append(self.request.sequences[index].request_id)
                if self._track is not None:
                    self._track.end(index, "error", now_s)
        self._metrics.finished_time = now_s
        return failed

    def leave(self) -> None:
        """Nobody waits for the rest."""
        if self._track is not None:
            self._track.abort()

    def _add_prompt_logprobs(self, entries: Sequence[TokenLogprobs]) -> None:
        """Positions in order from 1 in each epoch; those that an earlier epoch reported are not taken again."""
        num_known = len(self._prompt_logprobs) - 1 - self._num_prompt_logprobs_of_epoch
        self._num_prompt_logprobs_of_epoch += len(entries)
        self._prompt_logprobs += [name_logprobs(entry, self._tokenizer) for entry in entries[max(0, num_known) :]]

    def resume(self) -> list[NewRequest]:
        """The sequences that have not ended, to be run again by another engine behind what was received.

        Their epoch is a new one: what may still come of the old one is ignored.
        """
        self._num_prompt_logprobs_of_epoch = 0
        sequences = self.request.sequences
        resumed = []
        for index, continuation in enumerate(self.continuations):
            if continuation.finish_reason is None:
                sequences[index] = structs.replace(
                    sequences[index],
                    output_token_ids=list(continuation.token_ids),
                    epoch=sequences[index].epoch + 1,
                )
                resumed.append(sequences[index])
        return resumed

    def end(self, reason: FinishReason, now_s: float, error: Failure | None = None) -> list[str]:
        """End what has not ended yet, without the engine. Returns the ids of those sequences."""
        ended = []
        for index, continuation in enumerate(self.continuations):
            if continuation.finish_reason is None:
                sequence = self.request.sequences[index]
                delta = RequestDelta(
                    request_id=sequence.request_id, epoch=sequence.epoch, finish_reason=reason, error=error
                )
                self.apply(index, delta, now_s)
                ended.append(sequence.request_id)
        return ended

    def report(self) -> RequestOutput | None:
        """The output that is due now, if one is."""
        kind = self.request.sampling.output_kind
        if kind is RequestOutputKind.FINAL_ONLY and not self.is_finished:
            return None
        is_delta = kind is RequestOutputKind.DELTA
        chosen = [c for c in self.continuations if c.has_news] if is_delta else self.continuations
        prompt_logprobs = None
        if self.request.sampling.prompt_logprobs is not None:
            prompt_logprobs = self._prompt_logprobs[self._num_prompt_logprobs_reported if is_delta else 0 :]
            self._num_prompt_logprobs_reported = len(self._prompt_logprobs)
        return RequestOutput(
            request_id=self.request.request_id,
            prompt=self.request.prompt.text,
            prompt_token_ids=self.request.prompt.token_ids,
            prompt_logprobs=prompt_logprobs,
            outputs=[continuation.report(is_delta=is_delta) for continuation in chosen],
            finished=self.is_finished,
            metrics=self._metrics,
            num_cached_tokens=self._num_cached_tokens,
        )


class OutputProcessor:
    """Deltas in, outputs out. One per front end; not thread-safe. meter: counts the requests; None: nobody does."""

    def __init__(self, tokenizer: OutputTokenizer | None, meter: RequestMeter | None = None) -> None:
        self._tokenizer = tokenizer
        self._meter = meter
        self._live: dict[str, LiveRequest] = {}
        self._sequences: dict[str, tuple[str, int]] = {}  # sequence id -> (request id, index)

    @property
    def num_live(self) -> int:
        """Requests that have not ended."""
        return len(self._live)

    def add(self, request: PreparedRequest) -> None:
        """Expect outputs of this request. Raises ValidationError when its id is in use."""
        ids = [sequence.request_id for sequence in request.sequences]
        if request.request_id in self._live or any(sequence_id in self._sequences for sequence_id in ids):
            raise ValidationError(
                f"request_id={request.request_id!r}: a request of this id is running",
                parameter="request_id",
                value=request.request_id,
            )
        track = self._meter.start(facts_of(request)) if self._meter is not None else None
        self._live[request.request_id] = LiveRequest(request, self._tokenizer, track)
        for index, sequence_id in enumerate(ids):
            self._sequences[sequence_id] = (request.request_id, index)

    def sequence_ids(self, request_ids: Iterable[str] | None = None) -> list[str]:
        """Ids, as the engine knows them, of these requests' sequences; of all live requests by default."""
        chosen = self._live if request_ids is None else request_ids
        return [
            sequence.request_id
            for request_id in chosen
            if request_id in self._live
            for sequence in self._live[request_id].request.sequences
        ]

    def forget(self, request_ids: Iterable[str], *, was_refused: bool = False) -> None:
        """Drop requests; what still arrives for them is ignored.

        was_refused: the engine never took them; they do not count as aborted.
        """
        for request_id in list(request_ids):
            live = self._live.pop(request_id, None)
            if live is not None and not was_refused:
                live.leave()
            for sequence in live.request.sequences if live else ():
                self._sequences.pop(sequence.request_id, None)

    def forget_all(self) -> None:
        """Drop every live request."""
        self.forget(self._live)

    def process(self, deltas: Sequence[RequestDelta], now_s: float) -> ProcessedDeltas:
        """Apply deltas in order; at most one output a request comes back, however many deltas it had."""
        touched: dict[str, LiveRequest] = {}
        stopped: list[str] = []
        for delta in deltas:
            known = self._sequences.get(delta.request_id)
            if known is None:
                continue
            request_id, index = known
            live = self._live[request_id]
            if delta.epoch != live.request.sequences[index].epoch:
                continue
            touched[request_id] = live
            stopped += live.apply(index, delta, now_s)
        outputs = []
        for request_id, live in touched.items():
            output = live.report()
            if output is not None:
                outputs.append(output)
            if live.is_finished:
                self.forget([request_id])
        return ProcessedDeltas(outputs, stopped)


def facts_of(request: PreparedRequest) -> RequestFacts:
    """What a meter wants to know of a request."""
    return RequestFacts(
        request_id=request.request_id,
        num_prompt_tokens=len(request.prompt.token_ids),
        num_sequences=len(request.sequences),
        max_tokens=request.sequences[0].max_tokens,
        temperature=request.sampling.temperature,
        top_p=request.sampling.top_p,
        arrival_s=request.arrival_s,
    )
