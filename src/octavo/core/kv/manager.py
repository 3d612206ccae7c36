"""KvManager: the planner's memory of all KV blocks."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.core.kv.plan import KvPlan
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup


class KvManager:
    """Plan, then commit: `begin` -> decisions on the KvPlan -> `commit`. Single-threaded; never blocks."""

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
        raise NotImplementedError

    @property
    def num_free_blocks(self) -> int:
        """Blocks that could be reserved now: free and cached-idle ones."""
        raise NotImplementedError

    def max_blocks_for(self, num_tokens: int, *, max_chunk: int) -> int:
        """Blocks one request of num_tokens holds at its peak, when no step computes more than max_chunk of them."""
        raise NotImplementedError

    def check_fits(self, num_tokens: int, *, max_chunk: int) -> None:
        """Raise CapacityError, with the number that would fit, if such a request could not run even alone."""
        raise NotImplementedError

    def begin(self) -> KvPlan:
        """Start a planning round on the present state."""
        raise NotImplementedError

    def commit(self, plan: KvPlan) -> None:
        """Apply a plan. Cannot fail; InvariantError if the manager was changed since `begin`."""
        raise NotImplementedError

    def publish(self, seq: KvSequence, num_tokens: int, token_ids: Sequence[int]) -> None:
        """A step that wrote positions below num_tokens has returned well: full blocks become readable by all.

        token_ids: tokens known now, at least num_tokens of them (an addition to the first draft of this interface:
        a block filled by decoding is hashed here, since its last token may be unknown while it is planned).
        Cost: two comparisons when no block was completed.
        """
        raise NotImplementedError

    def free(self, seq: KvSequence) -> None:
        """Give back all blocks, outside of a plan (finish, abort). Safe while steps in flight still name them.

        Unpublished blocks that nobody shares are forgotten. No-op for a sequence without blocks.
        """
        raise NotImplementedError

    def void_step(self, step_id: int) -> None:
        """Step `step_id` failed: unpublished blocks of it and of all steps behind it leave the cache.

        The scheduler frees the sequences those steps computed (their blocks hold nothing).
        """
        raise NotImplementedError

    def reset_prefix_cache(self) -> bool:
        """Forget all cached blocks. False, and no change, while any block is in use or leased."""
        raise NotImplementedError

    def check_integrity(self) -> None:
        """Raise InvariantError naming the block if states, reference counts or cache entries disagree. For tests."""
        raise NotImplementedError
