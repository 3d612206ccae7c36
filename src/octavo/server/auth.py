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

    def accepts(self, authorization: Sequence[bytes]) -> bool:
        """True: the one Authorization header holds a key. Takes the same time whichever key is meant or missed."""
        if not self._digests:
            return True
        if len(authorization) != 1 or not authorization[0].startswith(_SCHEME):
            return False
        given = hashlib.sha256(authorization[0][len(_SCHEME) :]).digest()
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(matches)
