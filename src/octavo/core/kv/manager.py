"""KvManager: the planner's memory of all KV blocks.

Owns: one pool, one prefix cache, the leases; when content becomes readable.
Does not own: bytes (the runner's), requests and their order (the scheduler's).

Invariants (`check_integrity`): each block but the null one is exactly one of free, owned by sequences, cached-idle,
or held by leases alone; reference counts equal the entries of block tables; only blocks with content are in the cache.
Everything here relies on an executor that runs steps in the order in which they were planned: a block freed while steps
in flight still name it is written again only by later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from octavo.base.errors import CapacityError, InvariantError
from octavo.core.kv.check import check_ledger
from octavo.core.kv.groups import make_rules
from octavo.core.kv.hashing import HashChain
from octavo.core.kv.leases import Lease, LeaseTable
from octavo.core.kv.ledger import Ledger
from octavo.core.kv.overlay import PoolOverlay
from octavo.core.kv.plan import KvLayout, KvPlan
from octavo.core.kv.pool import BlockPool
from octavo.core.kv.prefix import CacheEntry, EntryRow, PrefixCache
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup, peak_blocks


class KvManager:
    """Plan, then commit: `begin` -> decisions on the KvPlan -> `commit`. Single-threaded; never blocks.

    hash_key, model_identity and weights_generation enter every digest (see HashChain). Raises ConfigError for a pool
    without a usable block or a key that is too long.
    """

    def __init__(
        self,
        groups: tuple[KvGroup, ...],
        *,
        num_blocks: int,
        block_size: int,
        hash_key: bytes,
        enable_prefix_caching: bool = True,
        model_identity: str = "",
        weights_generation: int = 0,
    ) -> None:
        chain = None
        if enable_prefix_caching:
            chain = HashChain(
                block_size=block_size,
                hash_key=hash_key,
                model_identity=model_identity,
                weights_generation=weights_generation,
            )
        self._groups = groups
        self._layout = KvLayout(make_rules(groups, block_size), block_size, chain)
        self._pool = BlockPool(num_blocks)
        self._cache = PrefixCache(len(groups))
        self._ledger = Ledger(self._pool, self._cache, block_size)
        self._leases = LeaseTable()
        self._version = 0

    @property
    def num_free_blocks(self) -> int:
        """Blocks that could be reserved now: free and cached-idle ones."""
        return self._pool.num_free

    @property
    def num_usable_blocks(self) -> int:
        """Blocks of the pool, the null block left out."""
        return self._pool.num_blocks - 1

    @property
    def num_cached_blocks(self) -> int:
        """Blocks that the prefix cache can find, pending ones included."""
        return len(self._cache)

    # Capacity.

    def max_blocks_for(self, num_tokens: int, *, max_chunk: int) -> int:
        """Blocks one request of num_tokens holds at its peak, when no step computes more than max_chunk of them."""
        return peak_blocks(self._groups, num_tokens, block_size=self._layout.block_size, max_chunk=max_chunk)

    def check_fits(self, num_tokens: int, *, max_chunk: int) -> None:
        """Raise CapacityError, with the number that would fit, if such a request could not run even alone."""
        needed = self.max_blocks_for(num_tokens, max_chunk=max_chunk)
        if needed <= self.num_usable_blocks:
            return
        fits, too_many = 0, num_tokens
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self.max_blocks_for(middle, max_chunk=max_chunk) <= self.num_usable_blocks:
                fits = middle
            else:
                too_many = middle
        raise CapacityError(
            f"{num_tokens} tokens need {needed} KV blocks of {self._layout.block_size} tokens and there are "
            f"{self.num_usable_blocks}: use at most {fits} tokens, or give the KV cache more memory"
        )

    # Planning.

    def begin(self) -> KvPlan:
        """Start a planning round on the present state."""
        return KvPlan(self._layout, PoolOverlay(self._pool, self._cache), self._version)

    def commit(self, plan: KvPlan) -> None:
        """Apply a plan. Cannot fail; InvariantError, and no change, if the manager was changed since its `begin`."""
        if plan.version != self._version:
            raise InvariantError("a KvPlan is committed twice, or the manager was changed since it began")
        self._version += 1
        self._ledger.apply(plan.changes)

    # What happens to sequences.

    def publish(self, seq: KvSequence, num_tokens: int, token_ids: Sequence[int]) -> None:
        """A step that wrote positions below num_tokens has returned well: full blocks become readable by all.

        token_ids: tokens known now, at least num_tokens of them (a block filled by decoding may be hashed only here,
        since its last token can be unknown while it is planned). Raises InvariantError for positions the sequence has
        no blocks for. Cost: two comparisons when no block was completed.
        """
        size = self._layout.block_size
        chain = self._layout.chain
        num_full = num_tokens // size
        if num_full <= seq.num_published or chain is None:
            return
        if num_full * size > min(seq.capacity, len(token_ids)):
            raise InvariantError(
                f"publish of {num_tokens} tokens: {len(token_ids)} are known, blocks reach {seq.capacity}"
            )
        chain.extend(seq.digests, token_ids, num_full, salt=seq.salt, extras=seq.extras)
        self._version += 1
        for block_idx in range(seq.num_published, num_full):
            row = seq.unpublished.popleft() if seq.unpublished else self._empty_row
            for group, entry in enumerate(row):
                if entry is not None and self._cache.has(entry):
                    self._cache.publish(entry)
                else:
                    self._publish_anew(seq, group, block_idx, num_tokens)
        seq.num_published = num_full

    @property
    def _empty_row(self) -> EntryRow:
        return (None,) * len(self._layout.rules)

    def _publish_anew(self, seq: KvSequence, group: int, block_idx: int, num_tokens: int) -> None:
        """Add a block that has no entry, unless its content is in the cache or it holds something else."""
        block = seq.block_ids[group][block_idx]
        if not block or not self._layout.rules[group].is_complete(block_idx, num_tokens):
            return
        digest = seq.digests[block_idx]
        if self._cache.get(group, digest) is None and self._cache.of_block(block) is None:
            self._cache.insert(CacheEntry(group, digest, block, step_id=0, is_pending=False))

    def free(self, seq: KvSequence) -> None:
        """Give back all blocks, outside of a plan (finish, abort). Safe while steps in flight still name them.

        Unpublished blocks that nobody shares are forgotten. No-op for a sequence without blocks.
        """
        self._version += 1
        self._ledger.free(seq)

    def void_step(self, step_id: int) -> None:
        """Step `step_id` failed: unpublished blocks of it and of all steps behind it leave the cache.

        The scheduler frees the sequences those steps computed (their blocks hold nothing).
        """
        self._version += 1
        for entry in self._cache.pending_since(step_id):
            self._ledger.forget(entry)

    def retract(self, seq: KvSequence, step_id: int) -> set[KvSequence]:
        """The share of `seq` in step `step_id` failed: its unpublished blocks leave the cache.

        Returns the sequences that hold such blocks, or blocks computed from them: they must be freed and compute again.
        It does not matter whether `seq` still holds its blocks. Cost: all pending blocks; failures are rare.
        """
        self._version += 1
        of_seq = frozenset(seq.digests)
        return self._ledger.retract({entry for entry in self._cache.pending_since(step_id) if entry.digest in of_seq})

    def reset_prefix_cache(self) -> bool:
        """Forget all cached blocks. False, and no change, while any block is in use or leased."""
        if self._pool.num_free < self.num_usable_blocks:
            return False
        self._version += 1
        for entry in self._cache.entries():
            self._ledger.forget(entry)
        return True

    # Leases.

    def acquire_lease(self, block_ids: Iterable[int], *, epoch: int, deadline_s: float) -> Lease:
        """Keep blocks out of the free list, also when their sequences end, until the lease does.

        Raises InvariantError for the null block or one outside of the pool.
        """
        block_ids = tuple(block_ids)
        for block in block_ids:
            if not 0 < block < self._pool.num_blocks:
                raise InvariantError(f"lease of block {block}; the pool has 1 .. {self.num_usable_blocks}")
        self._version += 1
        for block in block_ids:
            self._pool.hold(block)
        return self._leases.open(block_ids, epoch=epoch, deadline_s=deadline_s)

    def release_lease(self, lease: Lease) -> None:
        """The transfer is over, in time or late. Raises InvariantError for a lease that has ended already."""
        self._leases.close(lease)
        self._version += 1
        for block in lease.block_ids:
            self._pool.end_hold(block, is_cached=self._cache.of_block(block) is not None)

    def expire_leases(self, now_s: float) -> tuple[Lease, ...]:
        """Quarantine the leases whose deadline has passed; returns them. Their content is in doubt, so nobody can find
        it in the cache; the blocks stay out until `release_lease` or `fence_leases`."""
        expired = self._leases.quarantine_expired(now_s)
        self._version += bool(expired)
        for lease in expired:
            for entry in filter(None, map(self._cache.of_block, lease.block_ids)):
                self._ledger.forget(entry)
        return expired

    def fence_leases(self, epoch: int) -> tuple[Lease, ...]:
        """The owners of leases older than `epoch` are gone for good: end those leases; returns them."""
        fenced = self._leases.older_than(epoch)
        for lease in fenced:
            self.release_lease(lease)
        return fenced

    def check_integrity(self) -> None:
        """Raise InvariantError naming the block if states, reference counts or cache entries disagree. For tests."""
        check_ledger(self._ledger, self._leases)
