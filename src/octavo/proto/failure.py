"""Why one request failed, and whom its text is for.

Owns: the kinds of failures.   Does not own: what a client is told of each (server/running.py).
"""

from __future__ import annotations

from typing import Literal

import msgspec

FailureKind = Literal["internal", "numeric", "request", "limit", "deadline"]
"""internal: a fault of ours; the text is for whoever runs the engine, never for its clients.

The texts of the others are fit for clients. numeric: the model found no finite numbers for these tokens, and finds none
the next time; nothing is wrong with the engine.   request: what was asked for cannot be done; the same request fails
again.   limit: a limit of the engine, of size or of what waits, was reached.   deadline: the time that a request has in
all was up."""


class Failure(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value, from wherever it happened to the consumer of the output."""

    kind: FailureKind
    text: str


def internal_failure(error: BaseException) -> Failure:
    """Of an exception that nobody foresaw."""
    return Failure("internal", f"{type(error).__name__}: {error}")
