"""Server-sent events out of a body that arrives in pieces of any size.

Owns: splitting into events, the `data` field.   Does not own: HTTP framing, what the data says.
Pure. Lines end with LF or CRLF; comments and fields other than `data` are dropped (HTML standard, section 9.2).
"""

from __future__ import annotations

from octavo.base.errors import OctavoError

MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventError(OctavoError):
    """The body is not a stream of events that we accept."""


class EventReader:
    """One stream. Invariant: `_pending` holds the bytes of at most one unfinished event."""

    def __init__(self) -> None:
        self._pending = b""

    @property
    def has_rest(self) -> bool:
        """True when bytes of an event without an end are left."""
        return bool(self._pending.strip())

    def feed(self, body: bytes) -> list[bytes]:
        """The data of each event that is complete now. Raises EventError for one over MAX_EVENT_BYTES."""
        if self._pending:
            body = self._pending + body
            self._pending = b""
        elif body.startswith(b"data: ") and body.find(b"\n") == len(body) - 2 and body.endswith(b"\n\n"):
            # One event of one line in one piece: what nearly every read brings.
            return [body[6:-2]]
        if b"\r" in body:
            body = self._without_cr(body)
        *events, self._pending = body.split(b"\n\n")
        if len(self._pending) > MAX_EVENT_BYTES:
            raise EventError(f"an event has more than {MAX_EVENT_BYTES} bytes")
        return [data for data in map(_data_of, events) if data is not None]

    @staticmethod
    def _without_cr(body: bytes) -> bytes:
        # A CR at the very end stays: its LF may come with the next piece.
        return body.replace(b"\r\n", b"\n")


def _data_of(event: bytes) -> bytes | None:
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None
