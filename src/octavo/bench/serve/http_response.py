"""Reading an HTTP/1.1 response as it arrives, in pieces of any size.

Owns: status line, headers, body framing (chunked, Content-Length, until close).   Does not own: sockets (client.py),
what the body means (events.py).
Pure: bytes in, body bytes out. The framing is that of RFC 9112; memory is bounded by MAX_HEAD_BYTES and one chunk line.
"""

from __future__ import annotations

from enum import Enum

from octavo.base.errors import OctavoError

MAX_HEAD_BYTES = 64 * 1024
MAX_CHUNK_LINE_BYTES = 1024


class ResponseError(OctavoError):
    """The bytes are not an HTTP/1.1 response."""


class _State(Enum):
    HEAD = "head"
    LENGTH = "length"
    UNTIL_CLOSE = "until_close"
    CHUNK_LINE = "chunk_line"
    CHUNK_DATA = "chunk_data"
    CHUNK_END = "chunk_end"
    TRAILERS = "trailers"
    COMPLETE = "complete"


class ResponseReader:
    """One response. Invariant: `num_bytes` counts what was fed; `status` is 0 until the head is complete."""

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        """Names in lower case."""
        self.num_bytes = 0
        self._state = _State.HEAD
        self._pending = b""
        self._num_left = 0

    @property
    def is_complete(self) -> bool:
        return self._state is _State.COMPLETE

    @property
    def keeps_connection(self) -> bool:
        """True when another request may follow on the same connection."""
        return self.is_complete and self.headers.get("connection", "").lower() != "close"

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; the part of the body in them, without framing. Raises ResponseError."""
        self.num_bytes += len(data)
        if self._pending:
            data = self._pending + data
            self._pending = b""
        elif self._state is _State.CHUNK_LINE:
            whole = _whole_chunk(data)
            if whole is not None:
                return whole
        if self._state is _State.HEAD:
            data = self._read_head(data)
        if self._state is _State.UNTIL_CLOSE:
            return data
        if self._state is _State.LENGTH:
            return self._read_length(data)
        return self._read_chunks(data)

    def finish(self) -> None:
        """The connection was closed. Raises ResponseError when the response is not whole."""
        if self._state is _State.UNTIL_CLOSE:
            self._state = _State.COMPLETE
            self.headers["connection"] = "close"
        if self._state is not _State.COMPLETE:
            raise ResponseError(
                f"the server closed the connection after {self.num_bytes} bytes of an unfinished response"
            )

    def _read_head(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > MAX_HEAD_BYTES:
                raise ResponseError(f"the response has more than {MAX_HEAD_BYTES} bytes of headers")
            self._pending = data
            return b""
        lines = data[:end].decode("latin-1").split("\r\n")
        self._read_status_line(lines[0])
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ResponseError(f"the response has a header without a colon: {line[:80]!r}")
            self.headers[name.strip().lower()] = value.strip()
        rest = data[end + 4 :]
        if 100 <= self.status < 200:
            # An interim answer such as 100 Continue: the real one follows.
            self.status, self.headers = 0, {}
            return self._read_head(rest)
        self._choose_framing()
        return rest

    def _read_status_line(self, line: str) -> None:
        version, _, rest = line.partition(" ")
        status, _, self.reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or not status.isdigit():
            raise ResponseError(f"not an HTTP/1.1 response: it begins with {line[:80]!r}")
        self.status = int(status)

    def _choose_framing(self) -> None:
        length = self.headers.get("content-length")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._state = _State.CHUNK_LINE
        elif self.status in (204, 304):
            self._state = _State.COMPLETE
        elif length is None:
            self._state = _State.UNTIL_CLOSE
        elif length.isdigit():
            self._num_left = int(length)
            self._state = _State.LENGTH if self._num_left else _State.COMPLETE
        else:
            raise ResponseError(f"the response has Content-Length {length[:80]!r}")

    def _read_length(self, data: bytes) -> bytes:
        if len(data) > self._num_left:
            raise ResponseError(f"{len(data) - self._num_left} bytes follow the end of the response")
        self._num_left -= len(data)
        if not self._num_left:
            self._state = _State.COMPLETE
        return data

    def _read_chunks(self, data: bytes) -> bytes:
        body: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if self._state is _State.COMPLETE:
                raise ResponseError(f"{end - at} bytes follow the end of the response")
            if self._state is _State.CHUNK_DATA:
                piece = data[at : at + self._num_left]
                body.append(piece)
                at += len(piece)
                self._num_left -= len(piece)
                if not self._num_left:
                    self._state = _State.CHUNK_END
                continue
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                if end - at > MAX_CHUNK_LINE_BYTES:
                    raise ResponseError("the response has a chunk line without an end")
                self._pending = data[at:]
                break
            self._read_chunk_line(data[at:line_end])
            at = line_end + 2
        return body[0] if len(body) == 1 else b"".join(body)

    def _read_chunk_line(self, line: bytes) -> None:
        if self._state is _State.CHUNK_END:
            if line:
                raise ResponseError(f"a chunk is longer than its size: {line[:20]!r} follows it")
            self._state = _State.CHUNK_LINE
        elif self._state is _State.TRAILERS:
            if not line:
                self._state = _State.COMPLETE
        else:
            self._num_left = _chunk_size(line.partition(b";")[0])
            self._state = _State.CHUNK_DATA if self._num_left else _State.TRAILERS


def _whole_chunk(data: bytes) -> bytes | None:
    """What is in `data` if that is one chunk from end to end, as nearly every read of a stream is."""
    line_end = data.find(b"\r\n")
    try:
        size = int(data[:line_end], 16)
    except ValueError:
        return None
    is_whole = size > 0 and len(data) == line_end + 4 + size and data.endswith(b"\r\n")
    return data[line_end + 2 : -2] if is_whole else None


def _chunk_size(text: bytes) -> int:
    try:
        size = int(text, 16)
    except ValueError:
        size = -1
    if size < 0:
        raise ResponseError(f"the response has a chunk of size {text[:20]!r}")
    return size
