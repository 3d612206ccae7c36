"""One line per request, whatever became of it; and text of clients made fit for a log.

Owns: the line's fields and form.   Does not own: the logger, prompts (they are in no line unless asked for).
The same fields are in the text of the message and, for JSON logs, on the record as `fields`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

MAX_FIELD_CHARS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLine:
    """What is logged of one request; None: it did not come to that."""

    request_id: str
    route: str
    status: int
    """HTTP status. A stream that failed after its start keeps the 200 it began with; finish_reason says error."""
    num_prompt_tokens: int | None = None
    num_output_tokens: int | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    finish_reason: str | None = None
    error: str | None = None
    """Why it was refused or failed, without the client's text."""

    def fields(self) -> dict[str, object]:
        """Field -> value, of those that are known, escaped and cut."""
        named = {
            "request_id": escape(self.request_id),
            "route": escape(self.route),
            "status": self.status,
            "prompt_tokens": self.num_prompt_tokens,
            "output_tokens": self.num_output_tokens,
            "ttft_ms": None if self.ttft_ms is None else round(self.ttft_ms, 2),
            "e2e_ms": None if self.e2e_ms is None else round(self.e2e_ms, 2),
            "finish_reason": self.finish_reason,
            "error": None if self.error is None else escape(self.error),
        }
        return {name: value for name, value in named.items() if value is not None}


def log_request(logger: logging.Logger, line: RequestLine) -> None:
    """Write the line: INFO, or WARNING where the server is at fault."""
    level = logging.WARNING if line.status >= 500 else logging.INFO
    if not logger.isEnabledFor(level):
        return
    fields = line.fields()
    text = " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())
    logger.log(level, "request %s", text, extra={"fields": fields})


def escape(text: str, max_chars: int = MAX_FIELD_CHARS) -> str:
    """Text of a client for one line of a log: control and unprintable characters escaped, cut at max_chars."""
    cut = text[:max_chars]
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode() for char in cut
    )
    return shown if len(text) <= max_chars else f"{shown}... ({len(text)} characters)"


def _quoted(value: object) -> str:
    text = str(value)
    return text if text and " " not in text and '"' not in text else '"' + text.replace('"', '\\"') + '"'
