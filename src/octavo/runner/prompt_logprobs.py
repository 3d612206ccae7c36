"""Logprobs of prompt tokens: the logits at position p say how likely the token at p + 1 was.

Owns: which positions are wanted, and the chunks their logits are made in.   Does not own: the arithmetic (ops).
Invariants: at most LOGITS_BYTES of logits exist at once, however long the prompt; the values do not depend on how the
prompt was cut into steps or chunks (each row of logits is computed by itself).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from octavo.kernels.ops import IntArray, OpTable, Tensor
from octavo.proto.failure import Failure
from octavo.proto.result import TokenLogprobs
from octavo.runner.batch import StepBatch
from octavo.runner.entries import PromptRanges, StepEntries
from octavo.runner.rows import TokenRows
from octavo.runner.sampling import as_token_logprobs
from octavo.runner.sampling_table import NONE_WANTED, SamplingTable

MAX_CHUNK = 64
LOGITS_BYTES = 16 * 2**20

LogitsOf = Callable[[IntArray], Tensor]
"""Places in T [R] -> logits [R, V]."""


def chunk_rows(vocab_size: int) -> int:
    """Rows of logits to make at once."""
    return max(1, min(MAX_CHUNK, LOGITS_BYTES // (4 * vocab_size)))


def find_ranges(entries: StepEntries, rows: TokenRows, table: SamplingTable) -> PromptRanges | None:
    """The positions of each entry whose logits are wanted; None where no sequence wants any."""
    wanted = table.num_prompt_logprobs[entries.rows] != NONE_WANTED
    if not wanted.any():
        return None
    first = np.maximum(entries.starts, table.num_prompt_logprobs_known[entries.rows])
    last = np.minimum(entries.ends, rows.num_prompt[entries.rows] - 1)
    return PromptRanges(first=first, last=np.where(wanted, np.maximum(first, last), first))


class PromptLogprobs:
    """Computes what `find_ranges` found, a few rows of logits at a time."""

    def __init__(self, ops: OpTable, rows: TokenRows, table: SamplingTable, *, max_rows: int) -> None:
        self._ops = ops
        self._rows = rows
        self._table = table
        self._max_rows = max_rows
        """Rows of logits at once."""

    def compute(
        self, batch: StepBatch, logits_of: LogitsOf
    ) -> tuple[dict[int, list[TokenLogprobs]], dict[int, Failure]]:
        """Entry index -> logprobs of its prompt tokens in this step; entry index -> what was wrong with its logits."""
        found: dict[int, list[TokenLogprobs]] = {}
        failed: dict[int, Failure] = {}
        ranges = batch.prompt_ranges
        if ranges is None:
            return found, failed
        for seq in np.flatnonzero(ranges.last > ranges.first).tolist():
            index = int(batch.entries.indices[seq])
            logprobs = self._of_sequence(batch, seq, logits_of)
            if all(position.logprobs[0] < math.inf for position in logprobs):  # NaN is not below
                found[index] = logprobs
            else:
                failed[index] = Failure("numeric", "the model's logits of a prompt position are not finite")
        return found, failed

    def _of_sequence(self, batch: StepBatch, seq: int, logits_of: LogitsOf) -> list[TokenLogprobs]:
        assert batch.prompt_ranges is not None
        first, last = int(batch.prompt_ranges.first[seq]), int(batch.prompt_ranges.last[seq])
        row = int(batch.entries.rows[seq])
        offset = int(batch.forward.query_start[seq]) - int(batch.entries.starts[seq])
        num_top = int(self._table.num_prompt_logprobs[row])
        logprobs: list[TokenLogprobs] = []
        for begin in range(first, last, self._max_rows):
            end = min(begin + self._max_rows, last)
            logits = logits_of(np.arange(begin + offset, end + offset, dtype=np.int32))
            targets = self._rows.token_ids[row, begin + 1 : end + 1]
            logprobs += map(as_token_logprobs, self._ops.token_logprobs(logits, targets, num_top))
        return logprobs
