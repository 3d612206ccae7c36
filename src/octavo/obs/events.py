"""What happens to requests, as values: what metrics, logs and traces are made from.

Owns: the records, and the durations that follow from their times.   Does not own: who reads them.
Times are seconds on the machine's monotonic clock; None: it did not come to that.
"""

from __future__ import annotations

import msgspec

from octavo.proto.output import FinishReason


class SequenceRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One sequence that has ended."""

    num_prompt_tokens: int
    num_cached_tokens: int
    """Prompt tokens that the prefix cache gave."""
    num_output_tokens: int
    max_tokens: int
    finish_reason: FinishReason
    arrival_s: float
    scheduled_s: float | None
    first_token_s: float | None
    last_token_s: float | None
    finished_s: float

    @property
    def e2e_s(self) -> float:
        """From arrival to the end."""
        return self.finished_s - self.arrival_s

    @property
    def ttft_s(self) -> float | None:
        """From arrival to the first token."""
        return _between(self.arrival_s, self.first_token_s)

    @property
    def queue_s(self) -> float | None:
        """From arrival to the first step."""
        return _between(self.arrival_s, self.scheduled_s)

    @property
    def prefill_s(self) -> float | None:
        """From the first step to the first token."""
        return _between(self.scheduled_s, self.first_token_s)

    @property
    def decode_s(self) -> float | None:
        """From the first token to the last."""
        return _between(self.first_token_s, self.last_token_s)

    @property
    def inference_s(self) -> float | None:
        """From the first step to the last token."""
        return _between(self.scheduled_s, self.last_token_s)

    @property
    def time_per_output_token_s(self) -> float | None:
        """Mean over the tokens after the first; None where there are none."""
        decode_s = self.decode_s
        return None if decode_s is None or self.num_output_tokens < 2 else decode_s / (self.num_output_tokens - 1)


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request whose sequences have all ended."""

    request_id: str
    temperature: float
    top_p: float
    sequences: tuple[SequenceRecord, ...]

    @property
    def num_output_tokens(self) -> int:
        """Of all sequences."""
        return sum(sequence.num_output_tokens for sequence in self.sequences)


def _between(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else max(0.0, end_s - start_s)
