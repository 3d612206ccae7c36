"""Small KV managers, and one-line steps on them."""

from __future__ import annotations

from octavo.core.kv.manager import KvManager
from octavo.core.kv.plan import Reservation
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup, deal_layers

P = 4
"""Tokens per block in these tests."""
FULL = KvGroup(kind="full", layers=(0,))
RECURRENT = KvGroup(kind="recurrent", layers=(1,))
GEMMA_KINDS = tuple("full" if layer % 6 == 5 else "sliding_window" for layer in range(18))
"""Gemma-3 270M: every sixth layer sees everything."""


def window_group(window: int) -> KvGroup:
    return KvGroup(kind="sliding_window", layers=(1,), window=window)


def gemma_groups(window: int) -> tuple[KvGroup, ...]:
    return deal_layers(GEMMA_KINDS, window)


def make_kv(
    *groups: KvGroup, num_blocks: int = 11, hash_key: bytes = b"test", enable_prefix_caching: bool = True
) -> KvManager:
    """A manager with num_blocks - 1 usable blocks; full attention unless said otherwise."""
    return KvManager(
        groups or (FULL,),
        num_blocks=num_blocks,
        block_size=P,
        hash_key=hash_key,
        enable_prefix_caching=enable_prefix_caching,
    )


def tokens(num_tokens: int, *, first: int = 0) -> list[int]:
    return list(range(first, first + num_tokens))


def run_step(
    kv: KvManager, seq: KvSequence, token_ids: list[int], computed: int, end: int, *, step_id: int = 0
) -> Reservation | None:
    """Plan one step of one sequence, without a prefix look-up, and commit it."""
    plan = kv.begin()
    reservation = plan.try_reserve(seq, token_ids, computed=computed, end=end, step_id=step_id)
    kv.commit(plan)
    kv.check_integrity()
    return reservation


def admit(kv: KvManager, seq: KvSequence, token_ids: list[int], *, step_id: int = 0) -> int:
    """Plan all tokens of an empty sequence in one step, prefix hit included; returns the tokens hit."""
    plan = kv.begin()
    hit = plan.find_prefix(seq, token_ids, len(token_ids) - 1)
    end = len(token_ids)
    assert plan.try_reserve(seq, token_ids, computed=hit.num_tokens, end=end, hit=hit, step_id=step_id) is not None
    kv.commit(plan)
    kv.check_integrity()
    return hit.num_tokens


def cache(kv: KvManager, token_ids: list[int], *, salt: str | None = None) -> KvSequence:
    """Compute, publish and free a sequence, so that only its cached blocks remain."""
    seq = KvSequence(salt=salt)
    admit(kv, seq, token_ids)
    kv.publish(seq, len(token_ids), token_ids)
    kv.free(seq)
    kv.check_integrity()
    return seq


def hit_tokens(kv: KvManager, token_ids: list[int], *, salt: str | None = None) -> int:
    """Tokens a new request would find."""
    return kv.begin().find_prefix(KvSequence(salt=salt), token_ids, len(token_ids) - 1).num_tokens
