"""Errors in Anthropic's form, with the names that fields have there.

Owns: kinds, statuses and names on Anthropic's routes.   Does not own: which errors there are (server/errors.py).
"""

from __future__ import annotations

import re

import msgspec

from octavo.server.anthropic.message_types import MessageErrorInfo, MessageErrorResponse
from octavo.server.errors import ApiError

OVERLOADED = 529
"""In place of 503 where the queue is full: Anthropic's own number, for which its clients have a class."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}
_NAMES = (
    (re.compile(r"^(tools\[\d+\])\.function\.parameters\b"), r"\1.input_schema"),
    (re.compile(r"^(tools\[\d+\])\.function\."), r"\1."),
    (re.compile(r"^response_format\.json_schema\.schema\b"), "output_config.format.schema"),
    (re.compile(r"^response_format\b"), "output_config.format"),
    (re.compile(r"^thinking_token_budget\b"), "thinking.budget_tokens"),
    (re.compile(r"^stop\b(?!_)"), "stop_sequences"),
)
"""What chat requests call a field, and what it is here. Messages begin with the name."""

_TOO_LONG = "prompt is too long: "
"""Words that agents look for to shorten a conversation."""


def status_of(error: ApiError) -> int:
    """As HTTP says it."""
    return OVERLOADED if error.code == "queue_full" else error.status


def describe(error: ApiError, request_id: str) -> MessageErrorResponse:
    """What a client is told."""
    status = status_of(error)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    message = error.message
    for pattern, name in _NAMES:
        message = pattern.sub(name, message)
    if error.code == "context_length_exceeded":
        message = _TOO_LONG + message
    return MessageErrorResponse(error=MessageErrorInfo(type=kind, message=message), request_id=request_id)


def write_error(error: ApiError, request_id: str) -> tuple[int, bytes]:
    """(status, body)."""
    return status_of(error), msgspec.json.encode(describe(error, request_id))
