"""What browsers of other origins may do. Off unless origins are allowed."""

from __future__ import annotations

from octavo.config.server_options import ServerConfig

Headers = list[tuple[bytes, bytes]]
MAX_AGE_S = 600


class CrossOrigin:
    """Headers for an origin; none for one that is not allowed."""

    def __init__(self, config: ServerConfig) -> None:
        self._origins = frozenset(origin.encode() for origin in config.allowed_origins)
        self._methods = ", ".join(config.allowed_methods).replace("*", "GET, POST, OPTIONS, HEAD").encode()
        self._headers = config.allowed_headers
        self._has_credentials = config.allow_credentials

    @property
    def is_on(self) -> bool:
        return bool(self._origins)

    def headers(self, origin: bytes | None) -> Headers:
        """For any answer."""
        if origin is None or not ({origin, b"*"} & self._origins):
            return []
        is_any = b"*" in self._origins and not self._has_credentials
        headers = [(b"access-control-allow-origin", b"*" if is_any else origin)]
        if not is_any:
            headers.append((b"vary", b"origin"))
        if self._has_credentials:
            headers.append((b"access-control-allow-credentials", b"true"))
        return headers

    def preflight(self, requested_headers: bytes | None) -> Headers:
        """Further headers for the answer to OPTIONS."""
        allowed = ", ".join(self._headers).encode()
        if "*" in self._headers:
            # With credentials, and for Authorization always, browsers do not take * for an answer.
            allowed = requested_headers or b"*"
        return [
            (b"access-control-allow-methods", self._methods),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
        ]
