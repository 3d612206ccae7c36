"""The prefix cache: which block of which group stores a digest, and how long a prefix of them a sequence can use.

Owns: the map (group, digest) -> entry and its inverse. Does not own: reference counts and eviction order (`pool.py`):
an entry lives until its block is given out again, and that order is the pool's.

An entry is *pending* from the plan that fills its block until the step that did has returned; only requests of the same
step or of steps behind it (all later plans) can find it, and the executor computes it before they read it. Then it is
*published*. When a step fails, the pending entries of it and of those behind it go, and nothing is left behind.
Blocks of equal content are not merged; the first one is found, the others are ordinary memory of their sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from octavo.core.kv.groups import GroupRule, IsPresent

EntryRow = Sequence["CacheEntry | None"]
"""The entries of one logical block, by group."""
LookUp = Callable[[int, bytes], "CacheEntry | None"]
"""(group, digest) -> entry."""


class CacheEntry:
    """A block's place in the cache. Compared by identity."""

    __slots__ = ("block", "digest", "group", "is_pending", "step_id")

    def __init__(self, group: int, digest: bytes, block: int, *, step_id: int, is_pending: bool = True) -> None:
        self.group = group
        self.digest = digest
        self.block = block
        self.step_id = step_id
        """The step that completes the block."""
        self.is_pending = is_pending

    def __repr__(self) -> str:
        state = f"pending on step {self.step_id}" if self.is_pending else "published"
        return f"CacheEntry(block {self.block}, group {self.group}, {self.digest.hex()[:8]}, {state})"


class PrefixCache:
    """Entries by (group, digest) and by block; at most one for either."""

    def __init__(self, num_groups: int) -> None:
        self._by_digest: list[dict[bytes, CacheEntry]] = [{} for _ in range(num_groups)]
        self._by_block: dict[int, CacheEntry] = {}
        self._pending: set[CacheEntry] = set()

    def __len__(self) -> int:
        return len(self._by_block)

    @property
    def num_digests(self) -> int:
        """Entries, counted by digest."""
        return sum(map(len, self._by_digest))

    def entries(self) -> list[CacheEntry]:
        """All entries."""
        return list(self._by_block.values())

    def get(self, group: int, digest: bytes) -> CacheEntry | None:
        """The entry that stores this digest."""
        return self._by_digest[group].get(digest)

    def of_block(self, block: int) -> CacheEntry | None:
        """The entry of this block."""
        return self._by_block.get(block)

    def has(self, entry: CacheEntry) -> bool:
        """Whether the entry is still in the cache."""
        return self._by_block.get(entry.block) is entry

    def insert(self, entry: CacheEntry) -> None:
        """Add an entry; neither its digest nor its block may have one."""
        self._by_digest[entry.group][entry.digest] = entry
        self._by_block[entry.block] = entry
        if entry.is_pending:
            self._pending.add(entry)

    def publish(self, entry: CacheEntry) -> None:
        """Its bytes are there."""
        entry.is_pending = False
        self._pending.discard(entry)

    def drop(self, entry: CacheEntry) -> None:
        """Take an entry out."""
        del self._by_digest[entry.group][entry.digest]
        del self._by_block[entry.block]
        self._pending.discard(entry)

    def pending_since(self, step_id: int) -> list[CacheEntry]:
        """Pending entries of this step and of those behind it."""
        return [entry for entry in self._pending if entry.step_id >= step_id]


class HitLosses(msgspec.Struct, frozen=True, gc=False):
    """Tokens that some groups had cached but the hit could not use, by what stood in the way."""

    full: int = 0
    """A full-attention group had lost a block that the one asked first still had."""
    sliding_window: int = 0
    """A window's worth of blocks was not there."""
    recurrent: int = 0
    """There was no state at that boundary."""
    last_token: int = 0
    """The sequence ends with a block, whose last token must be computed to have something to sample from."""


class PrefixHit(msgspec.Struct, frozen=True):
    """The longest usable prefix found for a sequence. Good until the next `free` or `try_reserve` of that plan."""

    num_tokens: int
    """A multiple of the block size, at most len(token_ids) - 1."""
    rows: Sequence[EntryRow] = ()
    """By logical block: the entry of each group; None where a group needs none."""
    losses: HitLosses = HitLosses()

    @property
    def num_published(self) -> int:
        """Leading blocks whose entries are all published."""
        for index, row in enumerate(self.rows):
            if any(entry is not None and entry.is_pending for entry in row):
                return index
        return len(self.rows)

    def tables(self, num_groups: int) -> list[list[int]]:
        """By group: the block ids, 0 where it needs none."""
        return [[entry.block if (entry := row[group]) else 0 for row in self.rows] for group in range(num_groups)]


NO_HIT = PrefixHit(num_tokens=0)


def find_hit(
    rules: Sequence[GroupRule], look_up: LookUp, digests: Sequence[bytes], *, max_blocks: int, block_size: int
) -> PrefixHit:
    """The longest prefix, in blocks up to max_blocks, that all groups can go on from.

    Full groups first: what they have is closed downward. Then the other groups shorten it in turn until a whole turn
    changes nothing (fixed point; vLLM's hybrid coordinator, facts only). Cost: a look-up a block for full groups,
    about a window's worth for the others.
    """
    lost = {"full": 0, "sliding_window": 0, "recurrent": 0}
    num_blocks = max_blocks

    def shorten(group: int, *, is_first: bool) -> bool:
        nonlocal num_blocks
        found = rules[group].find_hit(_presence(look_up, group, digests), num_blocks)
        is_shorter = found < num_blocks
        if not is_first:
            lost[rules[group].kind] += (num_blocks - found) * block_size
        num_blocks = found
        return is_shorter

    full = [group for group, rule in enumerate(rules) if rule.kind == "full"]
    others = [group for group, rule in enumerate(rules) if rule.kind != "full"]
    for index, group in enumerate(full):
        shorten(group, is_first=index == 0)
    num_settled = 0
    turn = 0
    while num_blocks and num_settled < len(others):
        is_shorter = shorten(others[turn % len(others)], is_first=turn == 0 and not full)
        num_settled = 1 if is_shorter else num_settled + 1
        turn += 1
    losses = HitLosses(**lost)
    if not num_blocks:
        return PrefixHit(num_tokens=0, losses=losses)
    num_tokens = num_blocks * block_size
    first = [rule.first_needed(num_tokens) for rule in rules]
    rows = [
        [look_up(group, digests[block]) if block >= first[group] else None for group in range(len(rules))]
        for block in range(num_blocks)
    ]
    return PrefixHit(num_tokens=num_tokens, rows=rows, losses=losses)


def _presence(look_up: LookUp, group: int, digests: Sequence[bytes]) -> IsPresent:
    return lambda block: look_up(group, digests[block]) is not None
