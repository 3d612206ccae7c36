"""Fewer, larger chunks: `stream_interval`.

The first token of a text is sent at once, so that waiting for it ends; then so many tokens go together.
"""

from __future__ import annotations

from octavo.outputs import CompletionOutput


class ChunkGate:
    """Holds back the outputs of one text until enough tokens have come, or its end."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._held: CompletionOutput | None = None
        self._is_first = True

    def pass_through(self, output: CompletionOutput) -> CompletionOutput | None:
        """What is due now; None: nothing yet."""
        held = self._held
        if held is not None:
            output = _join(held, output)
        is_due = self._is_first or len(output.token_ids) >= self._interval or output.finished()
        self._held = None if is_due else output
        self._is_first = self._is_first and not output.token_ids
        return output if is_due else None


def _join(first: CompletionOutput, second: CompletionOutput) -> CompletionOutput:
    logprobs = None
    if first.logprobs is not None or second.logprobs is not None:
        logprobs = [*(first.logprobs or []), *(second.logprobs or [])]
    return CompletionOutput(
        index=second.index,
        text=first.text + second.text,
        token_ids=first.token_ids + second.token_ids,
        cumulative_logprob=second.cumulative_logprob,
        logprobs=logprobs,
        finish_reason=second.finish_reason,
        stop_reason=second.stop_reason,
        error=second.error,
        error_kind=second.error_kind,
    )
