"""KvPlan: the KV side of one planning round, decided on an overlay and applied all at once.

Owns: the decisions of the round, in order. Does not own: the pool, the cache and the sequences, which it only reads
(it does add digests to sequences: a memo of a pure function). `KvManager.commit` applies it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octavo.base.errors import InvariantError
from octavo.core.kv.demand import StepDemand, make_demand
from octavo.core.kv.groups import GroupRule
from octavo.core.kv.hashing import HashChain
from octavo.core.kv.ledger import FreeChange, ReserveChange, tail_first
from octavo.core.kv.overlay import PoolOverlay
from octavo.core.kv.prefix import NO_HIT, CacheEntry, PrefixHit, find_hit
from octavo.core.kv.sequence import KvSequence


class Reservation(msgspec.Struct, frozen=True):
    """Blocks granted to a sequence for one step."""

    new_blocks: tuple[tuple[int, int, list[int]], ...] = ()
    """(group, first logical block, block ids): what the runner must write into the row's block tables. The first
    reservation of a sequence lists its whole tables, prefix hit included. Empty for most decode steps. Entries that
    have become null behind a window are not repeated: nothing reads there."""


NO_NEW_BLOCKS = Reservation()


class KvLayout(msgspec.Struct, frozen=True):
    """What does not change from plan to plan."""

    rules: tuple[GroupRule, ...]
    block_size: int
    chain: HashChain | None
    """None: no prefix caching."""


class KvPlan:
    """One planning round. Decisions are made on it in order; the pool changes only in `KvManager.commit`.

    A plan that is not committed is simply dropped. Nothing else of the manager may be called between `begin` and
    `commit` (that raises InvariantError at commit).
    """

    def __init__(self, layout: KvLayout, overlay: PoolOverlay, version: int) -> None:
        self.version = version
        self.changes: list[ReserveChange | FreeChange] = []
        self._layout = layout
        self._overlay = overlay
        self._touched: dict[KvSequence, ReserveChange | FreeChange] = {}
        """The last decision about a sequence."""
        self._fillers: dict[CacheEntry, ReserveChange] = {}
        """Entries that are new in this plan, and whose step share fills their blocks."""

    @property
    def num_free_blocks(self) -> int:
        """Blocks that could be reserved now, cached-idle ones included."""
        return self._overlay.num_free

    def find_prefix(self, seq: KvSequence, token_ids: Sequence[int], max_tokens: int) -> PrefixHit:
        """Longest usable hit for a sequence that holds no blocks, at most min(max_tokens, len(token_ids) - 1).

        Published blocks and blocks pending in steps in flight or earlier in this plan count (states of recurrent
        groups: not those of this plan). Not called for requests
        that must not read the cache; pass hit=None for them. Cost: about 1 us a block the first time (hashing; kept
        in the sequence), then a look-up per block and group.
        """
        layout = self._layout
        if layout.chain is None:
            return NO_HIT
        self._extend_digests(seq, token_ids, len(token_ids) // layout.block_size)
        max_blocks = max(0, min(max_tokens, len(token_ids) - 1)) // layout.block_size
        hit = find_hit(
            layout.rules,
            self._look_up,
            seq.digests,
            max_blocks=max_blocks,
            block_size=layout.block_size,
        )
        is_cut_by_one = hit.num_tokens + layout.block_size == len(token_ids)
        if is_cut_by_one and self._overlay.look_up(0, seq.digests[max_blocks]) is not None:
            losses = msgspec.structs.replace(hit.losses, last_token=layout.block_size)
            return msgspec.structs.replace(hit, losses=losses)
        return hit

    def try_reserve(
        self,
        seq: KvSequence,
        token_ids: Sequence[int],
        *,
        computed: int,
        end: int,
        hit: PrefixHit | None = None,
        step_id: int,
        keep_free: int = 0,
    ) -> Reservation | None:
        """Blocks for positions computed .. end of step `step_id`; all or nothing, None if there are too few.

        token_ids: tokens known now (may be shorter than `end`: sampled tokens still in flight, drafts left out).
        computed: the lowest position this step may turn out to start at; blocks behind the window seen from there are
            let go. With drafts in flight, pass the start if all of them are rejected.
        hit: from `find_prefix` of this plan, for a sequence without blocks; then computed == hit.num_tokens.
        keep_free: blocks that must remain free afterwards; plays no part when no block is needed.
        One reservation a sequence and plan (again after `free`). An exception leaves the plan unchanged.
        Cost: < 1 us when no block begins or ends in the step.
        """
        # A step that fills the last block goes the long way: the block becomes findable from here on.
        if end < seq.capacity and computed < seq.release_at and seq not in self._touched:
            return NO_NEW_BLOCKS
        layout, overlay = self._layout, self._overlay
        last = self._touched.get(seq)
        if isinstance(last, ReserveChange):
            raise InvariantError(f"step {step_id}: a sequence is reserved for twice in one plan")
        demand = make_demand(
            seq,
            layout.rules,
            layout.block_size,
            computed=computed,
            end=end,
            hit=hit or NO_HIT,
            is_freed=last is not None,
        )
        shared = demand.shared
        if not all(map(overlay.has, shared)):
            raise InvariantError("a prefix hit is used after other decisions took its blocks: find it again")
        num_needed = demand.num_new + sum(overlay.is_idle(entry.block) for entry in shared)
        num_back = sum(overlay.is_freed_by_release(seq.block_ids[group][block]) for group, block in demand.released)
        if num_needed and num_needed + keep_free > overlay.num_free + num_back:
            return None
        num_full = min(end, len(token_ids)) // layout.block_size
        self._extend_digests(seq, token_ids, num_full)
        return self._record(demand, shared, num_full, step_id)

    def free(self, seq: KvSequence) -> tuple[KvSequence, ...]:
        """Give all blocks of `seq` back within this plan (a victim, or a request whose planning went wrong).

        Returns the sequences that, in this very plan, were promised blocks which only `seq` would have filled: they
        are freed too and must leave this step (empty unless a sequence is freed after others hit its new blocks).
        A sequence with no blocks is a no-op.
        """
        last = self._touched.get(seq)
        if isinstance(last, FreeChange) or (last is None and not seq.capacity):
            return ()
        freed: tuple[KvSequence, ...] = ()
        if last is not None:
            for dependant in last.dependants:
                if self._touched[dependant.seq] is dependant:
                    freed += (*self.free(dependant.seq), dependant.seq)
        self._give_back(seq, last)
        change = FreeChange(seq)
        self._touched[seq] = change
        self.changes.append(change)
        return freed

    def _look_up(self, group: int, digest: bytes) -> CacheEntry | None:
        """An entry that a step of this plan could start from."""
        entry = self._overlay.look_up(group, digest)
        if entry in self._fillers and not self._layout.rules[group].is_shared_within_step:
            return None
        return entry

    def _record(self, demand: StepDemand, shared: Sequence[CacheEntry], num_full: int, step_id: int) -> Reservation:
        """Decide on a demand that can be met."""
        seq, overlay = demand.seq, self._overlay
        for group, block_idx in demand.released:
            overlay.release(seq.block_ids[group][block_idx])
        for entry in shared:
            overlay.share(entry.block)
        new_ids = [[overlay.take() if is_stored else 0 for is_stored in flags] for flags in demand.is_stored]
        change = ReserveChange(
            demand=demand,
            new_ids=new_ids,
            new_rows=self._register(demand, new_ids, num_full, step_id),
            dependants=[],
        )
        for entry in shared:
            filler = self._fillers.get(entry)
            if filler is not None:
                filler.dependants.append(change)
        for row in change.new_rows:
            self._fillers.update((entry, change) for entry in row if entry is not None)
        self._touched[seq] = change
        self.changes.append(change)
        if demand.hit.num_tokens:
            heads = demand.hit.tables(len(new_ids))
            return Reservation(tuple((group, 0, heads[group] + ids) for group, ids in enumerate(new_ids)))
        if not new_ids[0]:
            return NO_NEW_BLOCKS
        return Reservation(tuple((group, demand.first_new, list(ids)) for group, ids in enumerate(new_ids)))

    def _register(
        self, demand: StepDemand, new_ids: list[list[int]], num_full: int, step_id: int
    ) -> list[list[CacheEntry | None]]:
        """Pending entries for the blocks that are full of known tokens once this step has run."""
        if self._layout.chain is None:
            return []
        seq = demand.seq
        begin = len(demand.hit.rows) if demand.starts_empty else seq.num_registered
        rows: list[list[CacheEntry | None]] = []
        for block_idx in range(begin, num_full):
            row: list[CacheEntry | None] = []
            for group, rule in enumerate(self._layout.rules):
                entry = None
                if block_idx >= demand.first_kept[group] and rule.is_complete(block_idx, demand.end):
                    new_idx = block_idx - demand.first_new
                    block = new_ids[group][new_idx] if new_idx >= 0 else seq.block_ids[group][block_idx]
                    entry = self._overlay.try_add(group, seq.digests[block_idx], block, step_id)
                row.append(entry)
            rows.append(row)
        return rows

    def _extend_digests(self, seq: KvSequence, token_ids: Sequence[int], num_blocks: int) -> None:
        chain = self._layout.chain
        if chain is not None and num_blocks > len(seq.digests):
            chain.extend(seq.digests, token_ids, num_blocks, salt=seq.salt, extras=seq.extras)

    def _give_back(self, seq: KvSequence, last: ReserveChange | None) -> None:
        """Release all that `seq` holds after its last decision, and what only its steps vouch for."""
        tables, rows = seq.block_ids, list(seq.unpublished)
        if last is not None:
            tables, rows = last.tables(), last.rows()
        for block in tail_first(tables):
            self._overlay.release(block)
        for row in rows:
            for entry in row:
                if entry is not None and entry.is_pending:
                    self._overlay.drop_if_unshared(entry)
