"""What happened to one request, by the times its chunks came.

Owns: time to first token, gaps between chunks, counts, text.   Does not own: clocks, sockets: times are handed in.
As in vLLM's benchmark: the first token is the first chunk with a choice; a gap lies between two chunks, whatever number
of tokens they bring; the end is the last chunk with a choice, not the usage behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.bench.serve.backends import describe_error, read_chunk
from octavo.bench.serve.client import ExchangeError
from octavo.bench.serve.events import EventReader

MAX_ERROR_BYTES = 16 * 1024
DONE = b"[DONE]"


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """One request. Times in seconds; `start_s` is the clock's when it was sent, the others count from there."""

    index: int
    num_prompt_tokens: int
    arrival_s: float = 0.0
    """When it should have been sent: before `start_s` if the client held it back (--max-concurrency)."""
    start_s: float = 0.0
    ttft_s: float = 0.0
    itls_s: list[float] = field(default_factory=list)
    latency_s: float = 0.0
    num_output_tokens: int | None = None
    """As the server says; None if it does not."""
    num_chunks: int = 0
    """Events of any kind, the usage included."""
    text: str = ""
    error: str = ""
    is_success: bool = False
    closed_s: float = 0.0
    """The clock's when the exchange was over, whatever came of it."""
    status: int = 0
    """Of HTTP; 0 when no head came."""
    retry_after: str | None = None
    """The header of that name: when the server asks to come back."""

    @property
    def queue_s(self) -> float:
        """Time the client held it back."""
        return self.start_s - self.arrival_s

    @property
    def end_s(self) -> float:
        return self.start_s + self.latency_s

    @property
    def num_token_chunks(self) -> int:
        """Chunks that count as tokens where the server does not count."""
        return len(self.itls_s) + 1 if self.is_success else 0

    def tpot_s(self, num_output_tokens: int) -> float | None:
        """Mean time per token behind the first; None for an answer of one token."""
        return (self.latency_s - self.ttft_s) / (num_output_tokens - 1) if num_output_tokens > 1 else None


class StreamRecorder:
    """Fills a record from the body of a streamed answer (BodySink)."""

    def __init__(self, record: RequestRecord) -> None:
        self._record = record
        self._events = EventReader()
        self._texts: list[str] = []
        self._error_body = b""
        self._last_s: float | None = None
        self._is_done = False

    def on_body(self, status: int, body: bytes, now_s: float) -> None:
        """Some of the body arrived at `now_s`. Raises ExchangeError for what is no stream of chunks."""
        if status != 200:
            self._error_body = (self._error_body + body)[:MAX_ERROR_BYTES]
            return
        for data in self._events.feed(body):
            self._on_event(data, now_s)

    def finish(self, status: int, reason: str) -> None:
        """The answer is whole. Decides whether it is a success."""
        record = self._record
        record.text = "".join(self._texts)
        if status != 200:
            record.error = f"HTTP {status} {reason}: {describe_error(self._error_body)}".rstrip(": ")
        elif self._last_s is None:
            record.error = "the stream ended without a token"
        elif not self._is_done:
            record.error = "the stream ended before [DONE]"
        else:
            record.latency_s = self._last_s - record.start_s
            record.is_success = True

    def fail(self, error: str) -> None:
        """The exchange broke off."""
        self._record.text = "".join(self._texts)
        self._record.error = error

    def _on_event(self, data: bytes, now_s: float) -> None:
        if data == DONE:
            self._is_done = True
            return
        chunk = read_chunk(data)
        record = self._record
        record.num_chunks += 1
        if chunk.choices:
            if self._last_s is None:
                record.ttft_s = now_s - record.start_s
            else:
                record.itls_s.append(now_s - self._last_s)
            self._last_s = now_s
            self._texts.append(chunk.choices[0].new_text)
        elif chunk.error is not None:
            raise ExchangeError(f"error in the stream: {describe_error({'error': chunk.error})}")
        if chunk.usage is not None:
            self._on_usage(chunk.usage.completion_tokens, chunk.usage.prompt_tokens)

    def _on_usage(self, num_output: int | None, num_prompt: int | None) -> None:
        if num_output is not None:
            self._record.num_output_tokens = num_output
        if num_prompt is not None:
            self._record.num_prompt_tokens = num_prompt
