"""Bytes to requests: what arrives on one connection, checked while it arrives.

Owns: parsing (llhttp through httptools), the bounds on each request, offers to change the protocol.
Does not own: the connection, timers, the order of answers (connection.py), what a valid head is (request_head.py).
Invariant: after the first fault nothing is passed on any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import httptools

from octavo.server.cycle import Scope
from octavo.server.errors import ApiError
from octavo.server.http_limits import HttpLimits
from octavo.server.request_head import RequestHead, not_http


class RequestSink(Protocol):
    """Who takes requests as they arrive."""

    def begin_request(self) -> None:
        """Its first byte has come."""
        ...

    def take_head(self, scope: Scope, *, keep_alive: bool, expects_continue: bool) -> None: ...
    def take_body(self, data: bytes) -> None: ...
    def end_request(self) -> None: ...


class RequestReader:
    """One connection's."""

    def __init__(self, sink: RequestSink, limits: HttpLimits, base_scope: Mapping[str, Any]) -> None:
        self.head = RequestHead(0.0)
        """Of the request that is arriving, or of the last one."""
        self.is_in_request = False
        """A request is arriving."""
        self._sink = sink
        self._limits = limits
        self._base_scope = base_scope
        self._parser = httptools.HttpRequestParser(self)
        self._is_head_complete = False
        self._fault: ApiError | None = None

    def feed(self, data: bytes) -> ApiError | None:
        """Pass on what these bytes complete. Returns the fault, if there is one; nothing can be read behind it."""
        if not self.is_in_request:
            self._begin()
        if not self._is_head_complete:
            self.head.num_received_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self._fault = self._fault or not_http(error)
        if self._fault is None and self.is_in_request and not self._is_head_complete:
            self._check(self.head.check_growth, self._limits)
        return self._fault

    def _begin(self) -> None:
        self.is_in_request = True
        self._is_head_complete = False
        self.head = RequestHead(time.monotonic())
        self._sink.begin_request()

    def _check(self, check: Callable[..., None], *arguments: object) -> None:
        """A check whose error is the request's fault; raised inside the parser's callbacks it would be lost."""
        try:
            check(*arguments)
        except ApiError as error:
            self._fault = self._fault or error

    def _parse(self, data: bytes) -> None:
        """An offer to upgrade is not taken: the request is read again without it, as RFC 9110 7.8 has it.

        Clients of Java offer h2c with every request.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            method, head = self._parser.get_method(), self.head
            if method == b"CONNECT":
                self._fault = not_http("CONNECT")
                return
            self._parser = httptools.HttpRequestParser(self)
            self._begin()
            self._parser.feed_data(head.without_upgrade(method) + rest)

    # ---- httptools --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self.is_in_request:  # a pipelined request: its first bytes came along with the one before
            self._begin()

    def on_url(self, url: bytes) -> None:
        self.head.add_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head.add_header(name, value, self._limits)

    def on_headers_complete(self) -> None:
        if self._fault is not None or self._parser.should_upgrade():
            return
        version = self._parser.get_http_version()
        try:
            scope = self.head.make_scope(
                self._base_scope, method=self._parser.get_method(), http_version=version, limits=self._limits
            )
        except ApiError as error:
            self._fault = error
            return
        self._is_head_complete = True
        keep_alive = version != "1.0" and bool(self._parser.should_keep_alive())
        self._sink.take_head(scope, keep_alive=keep_alive, expects_continue=self.head.expects_continue)

    def on_chunk_header(self) -> None:
        self._check(self.head.add_chunk, self._limits)

    def on_body(self, data: bytes) -> None:
        if self._fault is None:
            self.head.num_body_bytes += len(data)
            self._sink.take_body(data)

    def on_message_complete(self) -> None:
        if self._fault is None and not self._parser.should_upgrade():
            self.is_in_request = False
            self._sink.end_request()
