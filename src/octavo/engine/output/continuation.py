"""One sequence's output as it grows: ids, text, logprobs, and how it ended.

Owns: what was received for one sequence.   Does not own: merging the n of a request, when to report (outputs.py).
Invariants: text shown is never taken back; a stop string ends the sequence at the token that completes it, and tokens
received behind it are dropped; after the end nothing changes. The text of the token that stopped the sequence (end of
sequence, stop_token_ids) is not part of the text unless include_stop_str_in_output; its id is part of token_ids. Where
a grammar is complete no token stopped it, and the last one is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from octavo.engine.output.detokenize import IncrementalDetokenizer, TokenBytes
from octavo.engine.output.stop import StopMatch, StopMatcher
from octavo.outputs import CompletionOutput, Logprob, PositionLogprobs
from octavo.proto.failure import Failure
from octavo.proto.output import FinishReason, RequestDelta
from octavo.proto.result import TokenLogprobs
from octavo.proto.sampling import SamplingParams


class OutputTokenizer(TokenBytes, Protocol):
    """What outputs need of a tokenizer."""

    def token_text(self, token_id: int) -> str:
        """One token by itself, for people."""
        ...


def name_logprobs(entry: TokenLogprobs, tokenizer: OutputTokenizer | None) -> PositionLogprobs:
    """One position's logprobs by token id; the sampled (or prompt) token comes first."""
    return {
        token_id: Logprob(logprob, rank, tokenizer.token_text(token_id) if tokenizer else None)
        for token_id, logprob, rank in zip(entry.token_ids, entry.logprobs, entry.ranks, strict=True)
    }


class Continuation:
    """One of the n sequences of a request."""

    def __init__(self, index: int, params: SamplingParams, tokenizer: OutputTokenizer | None) -> None:
        self.index = index
        self.token_ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self._params = params
        self._tokenizer = tokenizer if params.detokenize else None
        self._detokenizer: IncrementalDetokenizer | None = None
        if self._tokenizer is not None:
            self._detokenizer = IncrementalDetokenizer(self._tokenizer, skip_special_tokens=params.skip_special_tokens)
        self._matcher = StopMatcher(params.stop_strings, include_stop=params.include_stop_str_in_output)
        self._stop_reason: int | str | None = None
        self._error: Failure | None = None
        self._logprobs: list[PositionLogprobs] = []
        self._cumulative_logprob = 0.0
        self._pieces: list[str] = []
        self._num_tokens_reported = 0
        self._num_pieces_reported = 0
        self._is_end_reported = False

    def apply(self, delta: RequestDelta) -> bool:
        """Add a delta. Returns True when a stop string ended the sequence and the engine does not know it yet."""
        if self.finish_reason is not None:
            return False
        num_taken, match = self._add_text(delta)
        entries = delta.logprobs[:num_taken]
        self._logprobs += [name_logprobs(entry, self._tokenizer) for entry in entries]  # may raise: before the ids
        for entry in entries:
            self._cumulative_logprob += entry.logprobs[0]
        self.token_ids += delta.token_ids[:num_taken]
        if match is not None:
            self.finish_reason, self._stop_reason = "stop", match.stop
            return delta.finish_reason is None
        self.finish_reason, self._stop_reason, self._error = delta.finish_reason, delta.stop_reason, delta.error
        return False

    def fail(self, error: Failure) -> None:
        """It can be continued no more; what it has stays."""
        self.finish_reason, self._error = "error", error

    def _add_text(self, delta: RequestDelta) -> tuple[int, StopMatch | None]:
        """Turn new tokens into text. Returns (tokens that belong to the output, the stop string found)."""
        if self._detokenizer is None:
            return len(delta.token_ids), None
        ids: Sequence[int] = delta.token_ids
        is_ended_by_token = delta.finish_reason == "stop" and not delta.is_complete
        if is_ended_by_token and not self._params.include_stop_str_in_output:
            ids = ids[:-1]
        if not self._params.stop_strings:
            self._pieces.append(self._detokenizer.feed(ids))
        else:
            for number, token_id in enumerate(ids, start=1):
                may_stop = len(self.token_ids) + number > self._params.min_tokens
                if match := self._show(self._detokenizer.feed((token_id,)), may_stop=may_stop):
                    return number, match
        if delta.finish_reason is not None:
            if match := self._show(self._detokenizer.flush()):
                return len(delta.token_ids), match
            self._pieces.append(self._matcher.flush())
        return len(delta.token_ids), None

    def _show(self, text: str, *, may_stop: bool = True) -> StopMatch | None:
        shown, match = self._matcher.feed(text, may_stop=may_stop)
        self._pieces.append(shown)
        return match

    @property
    def has_news(self) -> bool:
        """True: something happened since the last report."""
        return (
            self._num_tokens_reported < len(self.token_ids)
            or self._num_pieces_reported < len(self._pieces)
            or (self.finish_reason is not None and not self._is_end_reported)
        )

    def report(self, *, is_delta: bool) -> CompletionOutput:
        """The output so far, or with is_delta what came since the last report."""
        first_piece, first_token = (self._num_pieces_reported, self._num_tokens_reported) if is_delta else (0, 0)
        wants_logprobs = self._params.wants_logprobs
        output = CompletionOutput(
            index=self.index,
            text="".join(self._pieces[first_piece:]),
            token_ids=self.token_ids[first_token:],
            cumulative_logprob=self._cumulative_logprob if wants_logprobs else None,
            logprobs=self._logprobs[first_token:] if wants_logprobs else None,
            finish_reason=self.finish_reason,
            stop_reason=self._stop_reason,
            error=None if self._error is None else self._error.text,
            error_kind=None if self._error is None else self._error.kind,
        )
        if not is_delta:
            self._pieces = [output.text]  # joined once, not at every report again
        self._num_pieces_reported, self._num_tokens_reported = len(self._pieces), len(self.token_ids)
        self._is_end_reported = self.finish_reason is not None
        return output
