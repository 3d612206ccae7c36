"""Batch building: the inputs of one forward pass, gathered from the rows with array operations.

Owns: the step's own arrays.   Does not own: rows and block tables (only read here), the decision who runs.
Invariants: a batch shares no memory with the rows, so that rows may change while it waits. Tokens that an earlier step
has yet to sample are UNKNOWN in it and listed in `pending`; `resolve` fills them once that step has returned, and a
batch with an UNKNOWN token never reaches a model.
Cost: no loop over tokens or sequences, only over groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import ForwardBatch, GroupBatch, IntArray
from octavo.runner.block_table import BlockTables
from octavo.runner.entries import PromptRanges, StepEntries
from octavo.runner.rows import TokenRows

UNKNOWN = -1
"""Stands for a token that is not known yet. Never a token id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTokens:
    """Tokens [N] of a batch that steps in flight are to sample."""

    token_idx: npt.NDArray[np.intp]
    """Places in the batch's tokens."""
    seq_idx: npt.NDArray[np.intp]
    """Sequence of the batch that each belongs to."""
    rows: IntArray
    """Row each is sampled in."""
    positions: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """A forward batch and where its sequences come from."""

    entries: StepEntries
    forward: ForwardBatch
    sampling: npt.NDArray[np.intp]
    """[R] sequences of the batch that sample, ascending."""
    sample_rows: IntArray
    """[R] the place in T of the last position of each."""
    prompt_ranges: PromptRanges | None
    pending: PendingTokens | None

    @property
    def num_tokens(self) -> int:
        return len(self.forward.tokens)


def build_batch(
    entries: StepEntries, rows: TokenRows, tables: BlockTables, prompt_ranges: PromptRanges | None = None
) -> StepBatch:
    """Gather the batch of some entries. `prompt_ranges`: positions whose logits are wanted beside those that sample."""
    num_tokens = entries.num_tokens
    query_start = np.zeros(len(num_tokens) + 1, np.int32)
    np.cumsum(num_tokens, out=query_start[1:])
    total = int(query_start[-1])
    if total == len(num_tokens):  # every sequence computes one token
        seq_of_token = np.arange(total)
        positions = entries.starts
        row_of_token = entries.rows
    else:
        seq_of_token = np.repeat(np.arange(len(num_tokens)), num_tokens)
        positions = np.arange(total, dtype=np.int32) - (query_start[:-1] - entries.starts)[seq_of_token]
        row_of_token = entries.rows[seq_of_token]

    tokens = rows.token_ids[row_of_token, positions]
    pending = _find_pending(seq_of_token, row_of_token, positions, rows)
    if pending is not None:
        tokens[pending.token_idx] = UNKNOWN
    sampling = np.flatnonzero(entries.samples)
    sample_rows = query_start[1:][sampling] - 1
    return StepBatch(
        entries=entries,
        forward=ForwardBatch(
            tokens=tokens,
            positions=positions,
            query_start=query_start,
            seq_lens=entries.ends,
            groups=_gather_groups(entries, seq_of_token, positions, tables),
            logit_rows=_logit_rows(sample_rows, seq_of_token, positions, prompt_ranges),
        ),
        sampling=sampling,
        sample_rows=sample_rows,
        prompt_ranges=prompt_ranges,
        pending=pending,
    )


def resolve(batch: StepBatch, rows: TokenRows) -> npt.NDArray[np.bool_] | None:
    """Fill the pending tokens from what their rows have sampled meanwhile.

    Returns None when every token is known, else a mask [S] of the sequences that have all of theirs.
    """
    pending = batch.pending
    if pending is None:
        return None
    batch.forward.tokens[pending.token_idx] = rows.token_ids[pending.rows, pending.positions]
    missing = pending.positions >= rows.num_known[pending.rows]
    if not missing.any():
        return None
    batch.forward.tokens[pending.token_idx[missing]] = UNKNOWN
    complete = np.ones(len(batch.entries.rows), np.bool_)
    complete[pending.seq_idx[missing]] = False
    return complete


def find_blockless(batch: StepBatch, block_size: int) -> npt.NDArray[np.bool_] | None:
    """None when every token has a block to be written to, else a mask [S] of the sequences that have them."""
    blockless = [np.flatnonzero(group.slots < block_size) for group in batch.forward.groups]
    if not any(len(token_idx) for token_idx in blockless):
        return None
    complete = np.ones(len(batch.entries.rows), np.bool_)
    for token_idx in blockless:
        complete[sequences_of(batch, token_idx)] = False
    return complete


def sequences_of(batch: StepBatch, token_idx: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The sequence of the batch that each of some tokens [N] belongs to."""
    return np.searchsorted(batch.forward.query_start, token_idx, side="right") - 1


def _find_pending(
    seq_of_token: npt.NDArray[np.intp], row_of_token: IntArray, positions: IntArray, rows: TokenRows
) -> PendingTokens | None:
    token_idx = np.flatnonzero(positions >= rows.num_known[row_of_token])
    if not len(token_idx):
        return None
    return PendingTokens(
        token_idx=token_idx,
        seq_idx=seq_of_token[token_idx],
        rows=row_of_token[token_idx],
        positions=positions[token_idx],
    )


def _gather_groups(
    entries: StepEntries, seq_of_token: npt.NDArray[np.intp], positions: IntArray, tables: BlockTables
) -> tuple[GroupBatch, ...]:
    block_size = tables.block_size
    width = (int(entries.ends.max()) - 1) // block_size + 1 if len(entries.rows) else 0
    block_of_token = positions // block_size
    offset_of_token = positions - block_of_token * block_size
    return tuple(
        GroupBatch(slots=table[seq_of_token, block_of_token] * block_size + offset_of_token, block_table=table)
        for table in tables.gather(entries.rows, entries.starts, width)
    )


def _logit_rows(
    sample_rows: IntArray, seq_of_token: npt.NDArray[np.intp], positions: IntArray, prompt_ranges: PromptRanges | None
) -> IntArray:
    if prompt_ranges is None:
        return sample_rows
    first, last = prompt_ranges.first[seq_of_token], prompt_ranges.last[seq_of_token]
    wanted = np.flatnonzero((positions >= first) & (positions < last))
    return np.union1d(sample_rows, wanted).astype(np.int32)
