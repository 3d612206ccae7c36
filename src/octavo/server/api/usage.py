"""How many tokens a request took."""

from __future__ import annotations

import msgspec

from octavo.outputs import RequestOutput


class PromptTokensDetails(msgspec.Struct, kw_only=True):
    """Of the prompt's tokens."""

    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct, kw_only=True):
    """Of the answer's tokens."""

    reasoning_tokens: int


class Usage(msgspec.Struct, kw_only=True):
    """Tokens of one request; the prompt counts once, however many texts were made from it."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class UsageMeter:
    """Adds up the outputs of a request's prompts as they come."""

    def __init__(self, *, reports_cached: bool, counts_output: bool = True) -> None:
        self._reports_cached = reports_cached
        self._counts_output = counts_output
        self._prompts: dict[int, tuple[int, int]] = {}  # prompt -> (tokens, cached ones)
        self._num_output_tokens = 0
        self.num_reasoning_tokens: int | None = None
        """None: this answer is not looked through for reasoning."""
        self._ttft_s: float | None = None

    def add(self, prompt_idx: int, output: RequestOutput) -> None:
        """Count new tokens; `output` holds each of them once."""
        if prompt_idx not in self._prompts or output.finished:
            self._prompts[prompt_idx] = (len(output.prompt_token_ids), output.num_cached_tokens or 0)
        ttft_s = output.metrics.time_to_first_token_s if output.metrics is not None else None
        if ttft_s is not None and (self._ttft_s is None or ttft_s < self._ttft_s):
            self._ttft_s = ttft_s
        if self._counts_output:
            for continuation in output.outputs:
                self._num_output_tokens += len(continuation.token_ids)

    def notes(self) -> dict[str, object]:
        """For the request's line in the log."""
        ttft_ms = None if self._ttft_s is None else 1000 * self._ttft_s
        return {"num_output_tokens": self._num_output_tokens, "ttft_ms": ttft_ms}

    def usage(self) -> Usage:
        """So far."""
        num_prompt = sum(tokens for tokens, _ in self._prompts.values())
        cached = sum(cached for _, cached in self._prompts.values())
        num_reasoning = self.num_reasoning_tokens
        return Usage(
            prompt_tokens=num_prompt,
            total_tokens=num_prompt + self._num_output_tokens,
            completion_tokens=self._num_output_tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=cached) if self._reports_cached else None,
            completion_tokens_details=None
            if num_reasoning is None
            else CompletionTokensDetails(reasoning_tokens=num_reasoning),
        )
