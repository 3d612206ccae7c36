"""KvSequence: what the KV manager remembers of one request.

Owns: the block table, the chain of block digests, which blocks are not yet published.
Does not own: tokens, positions, requests; the scheduler keeps one KvSequence in each of its requests.
"""

from __future__ import annotations

from octavo.core.kv.hashing import HashExtra


class KvSequence:
    """KV state of one request. Made by the scheduler, changed by `KvManager` alone (on commit, publish and free).

    block_ids[g][i] is the block of group g that holds positions i*P .. (i+1)*P; 0 (the null block) where nothing is
    stored: behind a window, and between the states of a recurrent group. All groups have equally many entries. The
    list is empty until the first reservation is committed and again after `free`; digests survive `free`.

    salt: `cache_salt` of the request; requests with different salts share nothing.
    extras: whatever besides tokens decides the KV (adapter, images), see HashExtra.
    """

    def __init__(self, *, salt: str | None = None, extras: tuple[HashExtra, ...] = ()) -> None:
        self.salt = salt
        self.extras = extras
        self.block_ids: list[list[int]] = []
