"""A model whose logits are a function of the tokens it finds in the cache, and the op table it runs on.

The "KV" of a token is the token id itself. `forward` reads the ids before each position back through the block tables,
so that a stale, missing or foreign block changes the hash, and with it the logits.
"""

from dataclasses import dataclass, field

import numpy as np

from octavo.config.model_spec import ModelSpec, RopeSpec
from octavo.kernels.ops import ForwardBatch
from octavo.kernels.reference import ReferenceOps
from octavo.models import Hidden
from octavo.proto.kv import KvCacheSpec, KvGroup

VOCAB = 97
FULL = KvGroup(kind="full", layers=(0,))
WINDOW = KvGroup(kind="sliding_window", layers=(1,), window=6)
NOTHING = -7
"""What a slot holds before anything is written."""
NOT_FINITE = -8
"""In place of the token in a hidden state: it is not finite."""


def make_cache_spec(*, num_blocks: int = 64, block_size: int = 4, groups: tuple[KvGroup, ...] = (FULL,)) -> KvCacheSpec:
    return KvCacheSpec(
        groups=groups, block_size=block_size, num_blocks=num_blocks, num_kv_heads=1, head_dim=1, dtype="float32"
    )


def make_spec() -> ModelSpec:
    return ModelSpec(
        model_type="fake",
        vocab_size=VOCAB,
        hidden_size=1,
        intermediate_size=1,
        num_layers=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=1,
        max_position=1024,
        norm_eps=1e-6,
        rope=RopeSpec(theta=1.0),
        layer_kinds=("full",),
        attention_scale=1.0,
    )


class FakeCache:
    """One token id a slot."""

    def __init__(self, spec: KvCacheSpec) -> None:
        self.spec = spec
        self.slots = np.full(spec.num_blocks * spec.block_size, NOTHING, np.int64)


class FakeOps(ReferenceOps):
    """The reference back end's sampling over a FakeCache."""

    def __init__(self) -> None:
        super().__init__("float32")

    def allocate_kv(self, spec: KvCacheSpec) -> FakeCache:
        return FakeCache(spec)

    def copy_blocks(self, cache: FakeCache, pairs) -> None:
        pages = cache.slots.reshape(-1, cache.spec.block_size)
        for source, destination in pairs:
            pages[destination] = pages[source]


def history_hash(token_ids, window: int | None) -> int:
    """Hash of what a query at the end of `token_ids` sees in a group."""
    value = len(token_ids)
    for token in token_ids[-window:] if window else token_ids:
        value = (value * 1_000_003 + int(token) + 11) % (2**61 - 1)
    return value


def logits_of_hash(value: int) -> np.ndarray:
    """[V] float32, of standard deviation about 2."""
    return np.random.default_rng(value).normal(0, 2, VOCAB).astype(np.float32)


def expected_logits(token_ids, groups: tuple[KvGroup, ...] = (FULL,)) -> np.ndarray:
    """Logits after `token_ids`, computed without any cache: [V]."""
    return logits_of_hash(sum(history_hash(token_ids, group.window) for group in groups))


@dataclass
class FakeModel:
    """Counts its calls. The logits behind a token of `poison`, and the hidden states of one of `spoiled`, hold NaN."""

    kv_groups: tuple[KvGroup, ...] = (FULL,)
    poison: set[int] = field(default_factory=set)
    spoiled: set[int] = field(default_factory=set)
    error: Exception | None = None
    batches: list[ForwardBatch] = field(default_factory=list)
    max_logit_rows: int = 0
    spec: ModelSpec = field(default_factory=make_spec)

    def forward(self, batch: ForwardBatch, cache: FakeCache) -> Hidden:
        assert batch.tokens.min() >= 0, "a placeholder reached the embedding"
        assert (
            batch.tokens.dtype == batch.positions.dtype == batch.query_start.dtype == batch.seq_lens.dtype == np.int32
        )
        self.batches.append(batch)
        if self.error is not None:
            raise self.error
        for group in batch.groups:
            assert group.slots.dtype == group.block_table.dtype == np.int32
            cache.slots[group.slots] = batch.tokens
        hidden = np.zeros((len(batch.tokens), 2), np.int64)
        block_size = cache.spec.block_size
        for seq, table_idx in enumerate(range(len(batch.seq_lens))):
            for place in range(batch.query_start[seq], batch.query_start[seq + 1]):
                seen = np.arange(batch.positions[place] + 1)
                for group, shape in zip(batch.groups, self.kv_groups, strict=True):
                    blocks = group.block_table[table_idx, seen // block_size]
                    found = cache.slots[blocks * block_size + seen % block_size]
                    hidden[place, 0] += history_hash(found, shape.window)
                token = int(batch.tokens[place])
                hidden[place, 1] = NOT_FINITE if token in self.spoiled else token
        is_finite = None if len(batch.logit_rows) == len(hidden) else hidden[:, 1] != NOT_FINITE
        return Hidden(states=hidden[batch.logit_rows], rows=batch.logit_rows, is_finite=is_finite)

    def logits(self, hidden: Hidden, rows: np.ndarray) -> np.ndarray:
        self.max_logit_rows = max(self.max_logit_rows, len(rows))
        states = hidden.states[hidden.places(rows)]
        out = np.stack([logits_of_hash(int(value)) for value, _ in states])
        for place, (_, token) in enumerate(states):
            if token == NOT_FINITE or int(token) in self.poison:
                out[place, 0] = np.nan
        return out
