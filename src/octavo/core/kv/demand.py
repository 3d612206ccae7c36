"""StepDemand: what one step of one sequence needs from its block table.

Owns: the arithmetic from positions to blocks, over all groups. Does not own: whether there are enough (`plan.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octavo.base.errors import InvariantError
from octavo.base.units import ceil_div
from octavo.core.kv.groups import GroupRule
from octavo.core.kv.prefix import CacheEntry, PrefixHit
from octavo.core.kv.sequence import KvSequence


class StepDemand(msgspec.Struct, frozen=True, gc=False):
    """A sequence's blocks before and after a step of positions computed .. end."""

    seq: KvSequence
    starts_empty: bool
    """The sequence holds nothing, or has been freed in this plan."""
    end: int
    hit: PrefixHit
    released: list[tuple[int, int]]
    """(group, logical block) that nothing reads any more, tail first."""
    first_new: int
    """The first logical block behind the present table."""
    is_stored: list[list[bool]]
    """By group, for blocks first_new .. : whether it takes a block or stays null."""
    first_kept: list[int]
    """By group: the first logical block still needed."""
    release_at: int | float
    """The next start that lets blocks go."""

    @property
    def shared(self) -> list[CacheEntry]:
        """Entries of the hit."""
        return [entry for row in self.hit.rows for entry in row if entry is not None]

    @property
    def num_new(self) -> int:
        """Blocks to take."""
        return sum(map(sum, self.is_stored))

    @property
    def num_blocks(self) -> int:
        """Entries of each group's table after the step."""
        return self.first_new + len(self.is_stored[0])


def make_demand(
    seq: KvSequence,
    rules: Sequence[GroupRule],
    block_size: int,
    *,
    computed: int,
    end: int,
    hit: PrefixHit,
    is_freed: bool,
) -> StepDemand:
    """The demand of one step. Raises InvariantError if the step does not continue what the sequence holds.

    is_freed: take the sequence as empty, whatever it still holds.
    """
    starts_empty = is_freed or not seq.capacity
    capacity = hit.num_tokens if starts_empty else seq.capacity
    continues = computed == capacity if starts_empty else computed <= capacity and not hit.num_tokens
    if not continues or end <= computed:
        raise InvariantError(
            f"a step from {computed} to {end} does not continue a sequence with blocks for "
            f"{0 if starts_empty else seq.capacity} positions and a hit of {hit.num_tokens} tokens"
        )
    first_new = capacity // block_size
    num_blocks = max(first_new, ceil_div(end, block_size))
    first_kept = [rule.first_needed(computed) for rule in rules]
    return StepDemand(
        seq=seq,
        starts_empty=starts_empty,
        end=end,
        hit=hit,
        released=[] if starts_empty else _released(seq, first_kept),
        first_new=first_new,
        is_stored=[[rule.is_stored(block, end) for block in range(first_new, num_blocks)] for rule in rules],
        first_kept=first_kept,
        release_at=min(rule.release_at(computed) for rule in rules),
    )


def _released(seq: KvSequence, first_kept: Sequence[int]) -> list[tuple[int, int]]:
    """Non-null entries between what is kept now and what will be, tail first."""
    return [
        (group, block)
        for group, (table, begin, end) in enumerate(zip(seq.block_ids, seq.first_kept, first_kept, strict=True))
        for block in reversed(range(begin, min(end, len(table))))
        if table[block]
    ]
