"""API keys: which requests may pass.

Owns: comparing keys, and the list of paths that are open without one. Everything that is not on the list needs a key,
also what does not exist. Decisions look at the raw path alone, never at Host or a decoded form.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

OPEN_PATHS = frozenset({"/health", "/livez", "/readyz", "/ping", "/version", "/metrics"})
"""What probes and scrapers ask for; holds no text and no secrets."""

_SCHEME = b"Bearer "


class ApiKeys:
    """The keys of a server. None: every request passes."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def accepts(self, authorization: Sequence[bytes], api_key: Sequence[bytes] = ()) -> bool:
        """True: the one Authorization header holds a key, or the one x-api-key header of a route that takes it does.

        Takes the same time whichever key is meant or missed.
        """
        if not self._digests:
            return True
        is_bearer = len(authorization) == 1 and authorization[0].startswith(_SCHEME)
        by_bearer = is_bearer and self._is_key(authorization[0][len(_SCHEME) :])
        by_api_key = len(api_key) == 1 and self._is_key(api_key[0])
        return by_bearer or by_api_key

    def _is_key(self, text: bytes) -> bool:
        given = hashlib.sha256(text).digest()
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(matches)
