"""The head of a request while it arrives: what was read of it, its bounds, and the ASGI scope it makes.

Owns: counting bytes, headers and chunks of one request, and what a valid head is.   Does not own: reading (connection).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httptools

from octavo.server.cycle import Scope
from octavo.server.errors import ApiError
from octavo.server.http_limits import HttpLimits

_HOST = re.compile(rb"[A-Za-z0-9._~%\[\]:-]*")


class RequestHead:
    """One request's. `begin_s`: when its first byte came."""

    def __init__(self, begin_s: float) -> None:
        self.begin_s = begin_s
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.num_received_bytes = 0
        """Of the connection while the head was not complete: known before the headers themselves are."""
        self.num_chunks = 0
        self.num_body_bytes = 0
        self._num_bytes = 0

    def add_url(self, url: bytes) -> None:
        """More of the target."""
        self.url += url
        self._num_bytes += len(url)

    def add_header(self, name: bytes, value: bytes, limits: HttpLimits) -> None:
        """Beyond the limit headers are counted as too many, and not kept."""
        self._num_bytes += len(name) + len(value) + 4
        if len(self.headers) <= limits.max_header_count:
            self.headers.append((name.lower(), value))

    def check_growth(self, limits: HttpLimits) -> None:
        """Raise ApiError 431 for a head that is too large before it is complete."""
        if self.num_received_bytes > limits.max_header_bytes:
            raise headers_too_large(limits)

    def add_chunk(self, limits: HttpLimits) -> None:
        """A chunk of the body begins. Raises ApiError 413."""
        self.num_chunks += 1
        if self.num_chunks > limits.max_body_chunks:
            what = f"the body has more than {limits.max_body_chunks} chunks"
            raise ApiError(413, "content_too_large", f"Request body too large: {what}.")

    @property
    def expects_continue(self) -> bool:
        """The client waits for 100 Continue before it sends the body."""
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers)

    def make_scope(self, base: Mapping[str, Any], *, method: bytes, http_version: str, limits: HttpLimits) -> Scope:
        """ASGI's scope; the path as it was sent, not decoded. Raises ApiError 400 or 431."""
        if self._num_bytes > limits.max_header_bytes or len(self.headers) > limits.max_header_count:
            raise headers_too_large(limits)
        hosts = [value for name, value in self.headers if name == b"host"]
        is_host_missing = not hosts and http_version != "1.0"
        if len(hosts) > 1 or is_host_missing or not all(_HOST.fullmatch(host.strip()) for host in hosts):
            raise not_http("Host header missing or malformed")
        try:
            url = httptools.parse_url(self.url)
        except httptools.HttpParserInvalidURLError:
            raise not_http("malformed target") from None
        if not url.path or not url.path.startswith(b"/"):
            raise not_http("malformed target")
        return {
            **base,
            "http_version": http_version,
            "method": method.decode("ascii"),
            "path": url.path.decode("latin-1"),
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "state": {},
        }

    def without_upgrade(self, method: bytes) -> bytes:
        """The head again as bytes, without the offer to change the protocol."""
        lines = [b"%s %s HTTP/1.1" % (method, self.url)]
        lines += [b"%s: %s" % pair for pair in self.headers if pair[0] not in (b"upgrade", b"connection")]
        return b"\r\n".join([*lines, b"", b""])


def not_http(what: object) -> ApiError:
    """The bytes are no request."""
    return ApiError(400, "invalid_request", f"Not a valid HTTP request: {what}.")


def headers_too_large(limits: HttpLimits) -> ApiError:
    """More than the limits allow."""
    what = f"at most {limits.max_header_count} headers and {limits.max_header_bytes} bytes"
    return ApiError(431, "headers_too_large", f"Request headers too large: {what}.")
