"""Digests of blocks: what makes two blocks interchangeable.

Owns: the chain digest(i) = H(digest(i - 1), tokens of block i, extras of block i), keyed BLAKE2b with 32 bytes.
Does not own: which block stores a digest (`prefix.py`).

Equal digests mean equal model, weights generation, block size, salt, extras and tokens from position 0 on, so KV is
interchangeable. The key is a constant by default, so that restarts, tiers and routers agree; a secret one keeps
clients from guessing what others have cached.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence

import msgspec

from octavo.base.errors import ConfigError, ConfigProblem

DIGEST_BYTES = 32
_MAX_KEY_BYTES = 64
_DOMAIN = b"octavo kv 1"


class HashExtra(msgspec.Struct, frozen=True, kw_only=True):
    """Something besides token ids that decides KV: an adapter (the whole sequence), an image (a range of it).

    A ranged extra enters the digest of each block it overlaps, with its offset in that block, so that the same image
    shifted by a token is another prefix.
    """

    tag: str
    """Its kind, for example "lora" or "image"."""
    value: bytes
    """Digest or identity of its content."""
    start: int = 0
    """First position it covers."""
    num_tokens: int | None = None
    """How many positions; None: to the end."""

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether it covers one of the positions begin .. end."""
        return self.start < end and (self.num_tokens is None or self.start + self.num_tokens > begin)


class HashChain:
    """Computes digests for one model with one block size. Raises ConfigError for a key of more than 64 bytes."""

    def __init__(
        self, *, block_size: int, hash_key: bytes, model_identity: str = "", weights_generation: int = 0
    ) -> None:
        if len(hash_key) > _MAX_KEY_BYTES:
            remedy = f"use at most {_MAX_KEY_BYTES} bytes"
            raise ConfigError([ConfigProblem("prefix_hash_key", f"<{len(hash_key)} bytes>", remedy)])
        self._block_size = block_size
        self._pack_tokens = struct.Struct(f"<{block_size}I").pack
        self._keyed = hashlib.blake2b(digest_size=DIGEST_BYTES, key=hash_key)
        root = _DOMAIN + struct.pack("<IQ", block_size, weights_generation) + _field("model", model_identity.encode())
        self._root = self._digest(root)

    def extend(
        self,
        digests: list[bytes],
        token_ids: Sequence[int],
        num_blocks: int,
        *,
        salt: str | None,
        extras: tuple[HashExtra, ...],
    ) -> None:
        """Append to `digests` (those of the leading blocks) until it has num_blocks entries.

        token_ids must reach num_blocks * P. Raises struct.error for an id outside of 32 bits; `digests` then holds
        the blocks before it. Cost: about 1 us a block of 32 tokens; nothing for blocks that are there already.
        """
        size = self._block_size
        parent = digests[-1] if digests else self._root
        for begin in range(len(digests) * size, num_blocks * size, size):
            message = parent + self._pack_tokens(*token_ids[begin : begin + size])
            if begin == 0 and salt is not None:
                message += _field("salt", salt.encode())
            if extras:
                message += b"".join(_extra_fields(extras, begin, begin + size))
            parent = self._digest(message)
            digests.append(parent)

    def _digest(self, message: bytes) -> bytes:
        state = self._keyed.copy()
        state.update(message)
        return state.digest()


def block_key(digest: bytes, group: int) -> bytes:
    """Name of one group's block outside of the engine: digest, then the group as 4 bytes, little-endian."""
    return digest + group.to_bytes(4, "little")


def _extra_fields(extras: tuple[HashExtra, ...], begin: int, end: int) -> Iterator[bytes]:
    for extra in extras:
        if extra.overlaps(begin, end):
            yield _field(extra.tag, struct.pack("<q", extra.start - begin) + extra.value)


def _field(tag: str, value: bytes) -> bytes:
    """Tag and value, each behind its length, so that no two lists of fields read the same."""
    name = tag.encode()
    return struct.pack("<I", len(name)) + name + struct.pack("<I", len(value)) + value
