"""From the engine's deltas to RequestOutputs.

Owns: the live requests of a front end, the n sequences of each, times, what was already reported.
Does not own: text of one sequence (continuation.py), the engine.
Invariants: a request is live from `add` until its last sequence ended or `forget`; exactly one output of it has
finished=True; deltas of unknown requests (aborted, replayed under another epoch) change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from octavo.base.errors import ValidationError
from octavo.engine.continuation import Continuation, OutputTokenizer, name_logprobs
from octavo.engine.inputs import PreparedRequest
from octavo.outputs import PositionLogprobs, RequestMetrics, RequestOutput
from octavo.proto.output import RequestDelta
from octavo.proto.sampling import RequestOutputKind


@dataclass(frozen=True, slots=True)
class ProcessedDeltas:
    """What a batch of deltas came to."""

    outputs: list[RequestOutput]
    stopped_ids: list[str] = field(default_factory=list)
    """Sequences that a stop string ended; the engine has yet to be told."""


class LiveRequest:
    """A request whose outputs are still coming in."""

    def __init__(self, request: PreparedRequest, tokenizer: OutputTokenizer | None) -> None:
        self.request = request
        self.continuations = [Continuation(i, request.sampling, tokenizer) for i in range(len(request.sequences))]
        self._tokenizer = tokenizer if request.sampling.detokenize else None
        self._metrics = RequestMetrics(arrival_time=request.arrival_s)
        self._prompt_logprobs: list[PositionLogprobs | None] = [None]
        self._num_prompt_logprobs_reported = 0
        self._num_cached_tokens: int | None = None

    @property
    def is_finished(self) -> bool:
        """True: all sequences have ended."""
        return all(continuation.finish_reason is not None for continuation in self.continuations)

    def apply(self, index: int, delta: RequestDelta, now_s: float) -> bool:
        """Add a delta of sequence `index`. Returns True when the engine must be told to stop it."""
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
        self._prompt_logprobs += [name_logprobs(entry, self._tokenizer) for entry in delta.prompt_logprobs]
        must_stop = self.continuations[index].apply(delta)
        if self.is_finished and metrics.finished_time is None:
            metrics.finished_time = now_s
        return must_stop

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
    """Deltas in, outputs out. One per front end; not thread-safe."""

    def __init__(self, tokenizer: OutputTokenizer | None) -> None:
        self._tokenizer = tokenizer
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
        self._live[request.request_id] = LiveRequest(request, self._tokenizer)
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

    def forget(self, request_ids: Iterable[str]) -> None:
        """Drop requests; what still arrives for them is ignored."""
        for request_id in list(request_ids):
            live = self._live.pop(request_id, None)
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
            if live.apply(index, delta, now_s):
                stopped.append(delta.request_id)
        outputs = []
        for request_id, live in touched.items():
            output = live.report()
            if output is not None:
                outputs.append(output)
            if live.is_finished:
                self.forget([request_id])
        return ProcessedDeltas(outputs, stopped)
