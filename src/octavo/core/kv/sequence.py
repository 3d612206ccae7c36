"""KvSequence: what the KV manager remembers of one request.

Owns: the block table, the chain of block digests, which blocks are not yet published.
Does not own: tokens, positions, requests; the scheduler keeps one KvSequence in each of its requests.
"""

from __future__ import annotations

from collections import deque

from octavo.core.kv.groups import NEVER
from octavo.core.kv.hashing import HashExtra
from octavo.core.kv.prefix import EntryRow


class KvSequence:
    """KV state of one request. Made by the scheduler, changed by `KvManager` alone (on commit, publish and free).

    block_ids[g][i] is the block of group g that holds positions i*P .. (i+1)*P; 0 (the null block) where nothing is
    stored: behind a window, and between the states of a recurrent group. All groups have equally many entries. The
    list is empty until the first reservation is committed and again after `free`; digests survive `free`.

    salt: `cache_salt` of the request; requests with different salts share nothing.
    extras: whatever besides tokens decides the KV (adapter, images), see HashExtra.
    """

    __slots__ = (
        "block_ids",
        "capacity",
        "digests",
        "extras",
        "first_kept",
        "num_published",
        "release_at",
        "salt",
        "unpublished",
    )

    def __init__(self, *, salt: str | None = None, extras: tuple[HashExtra, ...] = ()) -> None:
        self.salt = salt
        self.extras = extras
        self.digests: list[bytes] = []
        """Of the leading full blocks, as far as they were needed; a function of tokens, salt and extras only."""
        self.block_ids: list[list[int]] = []
        self.forget_blocks()

    def forget_blocks(self) -> None:
        """Back to no blocks. Only the manager calls this, when it has given the blocks back."""
        self.block_ids = []
        self.first_kept: list[int] = []
        """By group: the first entry that is still needed; those before it are null."""
        self.capacity = 0
        """Positions the block table covers: entries of one group x P."""
        self.release_at: int | float = NEVER
        """A step that starts here or later lets blocks behind a window go."""
        self.num_published = 0
        """Leading blocks of the chain that need no more publishing."""
        self.unpublished: deque[EntryRow] = deque()
        """For blocks num_published .. : the pending cache entry of each group, None where it has none."""

    @property
    def num_registered(self) -> int:
        """Leading blocks of the chain that have been offered to the cache, published or pending."""
        return self.num_published + len(self.unpublished)
