"""From the life of each request to counters and records.

Owns: the times and counts of live requests.   Does not own: where counters lie (counters.py), who reads records.
Invariants: each sequence that was started ends exactly once, and is counted at that moment, with no step needed after
it; a request's record follows the end of its last sequence. Cost: about 1 µs a delta.
Thread: one, the front end's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo.base.clock import Clock
from octavo.obs import catalogue as metrics
from octavo.obs.counters import Counters
from octavo.obs.events import RequestRecord, SequenceRecord
from octavo.obs.server_load import ServerLoad
from octavo.proto.output import FinishReason

RecordSink = Callable[[RequestRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What is known of a request when it starts."""

    request_id: str
    num_prompt_tokens: int
    num_sequences: int
    max_tokens: int
    temperature: float
    top_p: float
    arrival_s: float


class SequenceTrack:
    """One sequence while it runs."""

    __slots__ = ("first_token_s", "last_token_s", "num_cached_tokens", "num_output_tokens", "record", "scheduled_s")

    def __init__(self) -> None:
        self.num_cached_tokens = 0
        self.num_output_tokens = 0
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.record: SequenceRecord | None = None
        """Set once it has ended."""


class RequestTrack:
    """One request while it runs. `RequestMeter.start` makes one."""

    def __init__(self, meter: RequestMeter, facts: RequestFacts) -> None:
        self._meter = meter
        self._facts = facts
        self._sequences = [SequenceTrack() for _ in range(facts.num_sequences)]

    def schedule(self, index: int, scheduled_s: float, num_cached_tokens: int) -> None:
        """Sequence `index` was first scheduled. Later calls (replay) change nothing."""
        sequence = self._sequences[index]
        if sequence.scheduled_s is None:
            sequence.scheduled_s = scheduled_s
            sequence.num_cached_tokens = num_cached_tokens

    def add_tokens(self, index: int, num_tokens: int, now_s: float) -> None:
        """Sequence `index` gained tokens, at least one. What comes after its end does not count."""
        sequence = self._sequences[index]
        if sequence.record is not None:
            return
        last_s = sequence.last_token_s
        sequence.last_token_s = now_s
        sequence.num_output_tokens += num_tokens
        if last_s is None:
            sequence.first_token_s = now_s
            self._meter.count_first_token(self._facts, sequence.num_cached_tokens, now_s)
        else:
            self._meter.count_gap(now_s - last_s)
        self._meter.count_tokens(num_tokens)

    def end(self, index: int, reason: FinishReason, now_s: float) -> None:
        """Sequence `index` has ended. The first end counts."""
        sequence = self._sequences[index]
        if sequence.record is not None:
            return
        facts = self._facts
        sequence.record = SequenceRecord(
            num_prompt_tokens=facts.num_prompt_tokens,
            num_cached_tokens=sequence.num_cached_tokens,
            num_output_tokens=sequence.num_output_tokens,
            max_tokens=facts.max_tokens,
            finish_reason=reason,
            arrival_s=facts.arrival_s,
            scheduled_s=sequence.scheduled_s,
            first_token_s=sequence.first_token_s,
            last_token_s=sequence.last_token_s,
            finished_s=now_s,
        )
        self._meter.count_sequence(sequence.record)
        records = tuple(track.record for track in self._sequences if track.record is not None)
        if len(records) == len(self._sequences):
            self._meter.count_request(facts, records)

    def abort(self) -> None:
        """Whatever has not ended ends here, as nobody waits for it."""
        now_s = self._meter.now_s()
        for index, sequence in enumerate(self._sequences):
            if sequence.record is None:
                self.end(index, "abort", now_s)


class RequestMeter:
    """Counts the requests of one front end, and hands a record of each to the sinks."""

    def __init__(self, counters: Counters, clock: Clock, sinks: Sequence[RecordSink] = ()) -> None:
        self.load = ServerLoad(counters)
        self._counters = counters
        self._clock = clock
        self._sinks = tuple(sinks)

    def now_s(self) -> float:
        """The clock of all times here."""
        return self._clock.now_s()

    def start(self, facts: RequestFacts) -> RequestTrack:
        """A request begins."""
        return RequestTrack(self, facts)

    def count_first_token(self, facts: RequestFacts, num_cached_tokens: int, now_s: float) -> None:
        """A prompt is computed and gave a token."""
        counters = self._counters
        counters.observe(metrics.TTFT, now_s - facts.arrival_s)
        counters.add(metrics.PROMPT_TOKENS, facts.num_prompt_tokens)
        counters.add(metrics.PROMPT_TOKENS_CACHED, num_cached_tokens)
        counters.add(metrics.PROMPT_TOKENS_BY_SOURCE, num_cached_tokens, ("local_cache_hit",))
        counters.add(metrics.PROMPT_TOKENS_BY_SOURCE, facts.num_prompt_tokens - num_cached_tokens, ("local_compute",))

    def count_dropped_frame(self) -> None:
        """The engine sent what is no message."""
        self._counters.add(metrics.DROPPED_FRAMES)

    def count_gap(self, gap_s: float) -> None:
        """Between two outputs of one sequence."""
        self._counters.observe(metrics.ITL, gap_s)

    def count_tokens(self, num_tokens: int) -> None:
        """Generated tokens arrived."""
        self._counters.add(metrics.GENERATION_TOKENS, num_tokens)

    def count_sequence(self, record: SequenceRecord) -> None:
        """A sequence has ended."""
        counters = self._counters
        counters.add(metrics.REQUEST_SUCCESS, 1.0, (record.finish_reason,))
        counters.observe(metrics.E2E, record.e2e_s)
        counters.observe(metrics.REQUEST_PROMPT_TOKENS, record.num_prompt_tokens)
        counters.observe(metrics.REQUEST_GENERATION_TOKENS, record.num_output_tokens)
        counters.observe(metrics.PARAMS_MAX_TOKENS, record.max_tokens)
        for metric, value in (
            (metrics.QUEUE_TIME, record.queue_s),
            (metrics.PREFILL_TIME, record.prefill_s),
            (metrics.DECODE_TIME, record.decode_s),
            (metrics.INFERENCE_TIME, record.inference_s),
            (metrics.TIME_PER_OUTPUT_TOKEN, record.time_per_output_token_s),
        ):
            if value is not None:
                counters.observe(metric, value)

    def count_request(self, facts: RequestFacts, sequences: tuple[SequenceRecord, ...]) -> None:
        """All sequences of a request have ended."""
        self._counters.observe(metrics.PARAMS_N, len(sequences))
        longest = max(sequence.num_output_tokens for sequence in sequences)
        self._counters.observe(metrics.REQUEST_MAX_GENERATION_TOKENS, longest)
        if not self._sinks:
            return
        record = RequestRecord(
            request_id=facts.request_id, temperature=facts.temperature, top_p=facts.top_p, sequences=sequences
        )
        for sink in self._sinks:
            sink(record)
