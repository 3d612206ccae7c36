"""KvPlan: the KV side of one planning round, decided on an overlay and applied all at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octavo.core.kv.sequence import KvSequence


class PrefixHit(msgspec.Struct, frozen=True):
    """The longest usable prefix found for a sequence. Good until the next `free` or `try_reserve` of that plan."""

    num_tokens: int
    """A multiple of the block size, at most len(token_ids) - 1."""


class Reservation(msgspec.Struct, frozen=True):
    """Blocks granted to a sequence for one step."""

    new_blocks: tuple[tuple[int, int, list[int]], ...] = ()
    """(group, first logical block, block ids): what the runner must write into the row's block tables. The first
    reservation of a sequence lists its whole tables, prefix hit included. Empty for most decode steps."""


class KvPlan:
    """One planning round. Decisions are made on it in order; the pool changes only in `KvManager.commit`.

    A plan that is not committed is simply dropped. Nothing else of the manager may be called between `begin` and
    `commit` (that raises InvariantError at commit).
    """

    num_free_blocks: int
    """Blocks that could be reserved now, cached-idle ones included."""

    def find_prefix(self, seq: KvSequence, token_ids: Sequence[int], max_tokens: int) -> PrefixHit:
        """Longest usable hit for a sequence that holds no blocks, at most min(max_tokens, len(token_ids) - 1).

        Published blocks and blocks pending in steps in flight or earlier in this plan count. Not called for requests
        that must not read the cache; pass hit=None for them. Cost: about 1 us a block the first time (hashing; kept
        in the sequence), then a look-up per block and group.
        """
        raise NotImplementedError

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
        keep_free: blocks that must remain free afterwards.
        One reservation a sequence and plan (again after `free`). An exception leaves the plan unchanged.
        Cost: < 1 us when no new block is needed.
        """
        raise NotImplementedError

    def free(self, seq: KvSequence) -> tuple[KvSequence, ...]:
        """Give all blocks of `seq` back within this plan (a victim, or a request whose planning went wrong).

        Returns the sequences that, in this very plan, were promised blocks which only `seq` would have filled: they
        are freed too and must leave this step (empty unless a sequence is freed after others hit its new blocks).
        A sequence with no blocks is a no-op.
        """
        raise NotImplementedError
