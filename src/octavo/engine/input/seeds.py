"""Where the noise keys of sequences come from.

A seed is 64 bits. Owns: deriving one seed from another, never at random. Source: BLAKE2, RFC 7693 (8-byte digests,
one personalisation per purpose, so that derived families do not meet).
"""

from __future__ import annotations

import hashlib
import struct

_MASK = (1 << 64) - 1


def derive_request_seed(engine_seed: int, ordinal: int) -> int:
    """Seed of the `ordinal`-th request (from 0) that came without one, offline: a run repeats exactly."""
    return _derive(b"octavo.request", engine_seed, ordinal)


def derive_child_seed(seed: int, index: int) -> int:
    """Seed of continuation `index` of n: child 0 has the request's own seed, child i has H(seed, i)."""
    return seed & _MASK if index == 0 else _derive(b"octavo.child", seed, index)


def _derive(purpose: bytes, seed: int, number: int) -> int:
    data = struct.pack("<QQ", seed & _MASK, number & _MASK)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=purpose).digest(), "little")
