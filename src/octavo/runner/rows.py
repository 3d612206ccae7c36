"""The tokens of each row, kept between steps. Never an input of a model: inputs are gathered from here.

Owns: the tokens known of each row, sampled ones included, and whether the row can be used.
Does not own: which sequence is in which row (the scheduler), block tables, sampling constants.
Invariant: `token_ids[row, :num_known[row]]` are real token ids of the vocabulary; what lies behind is never read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import IntArray
from octavo.proto.failure import Failure
from octavo.proto.plan import NewSequence


class TokenRows:
    """Tokens and lengths of `max_num_seqs` rows. Memory: 4 bytes a token, touched only where a sequence is."""

    def __init__(self, *, max_num_seqs: int, max_model_len: int, vocab_size: int) -> None:
        self.max_num_seqs = max_num_seqs
        self.max_model_len = max_model_len
        self._vocab_size = vocab_size
        self.token_ids: IntArray = np.zeros((max_num_seqs, max_model_len + 1), np.int32)
        """[max_num_seqs, max_model_len + 1]: a sequence of full length may still sample once."""
        self.num_known: IntArray = np.zeros(max_num_seqs, np.int32)
        """[max_num_seqs] tokens known: given by the scheduler or sampled since."""
        self.num_prompt: IntArray = np.zeros(max_num_seqs, np.int32)
        self.is_active: npt.NDArray[np.bool_] = np.zeros(max_num_seqs, np.bool_)
        self.faults: dict[int, Failure] = {}
        """Row -> why its sequence cannot be computed. Such a row is not active."""

    def free(self, rows: Sequence[int]) -> None:
        """Forget the sequences of some rows. Freeing a free row does nothing."""
        for row in rows:
            self.is_active[row] = False
            self.faults.pop(row, None)

    def admit(self, new: NewSequence) -> None:
        """Put a sequence into its row. One that cannot be computed leaves a fault in place of an active row."""
        row = new.row
        self.free([row])
        fault = self._fault_of(new)
        if fault is not None:
            self.set_fault(row, Failure("internal", fault))
            return
        num_tokens = len(new.token_ids)
        self.token_ids[row, :num_tokens] = new.token_ids
        self.num_known[row] = num_tokens
        self.num_prompt[row] = new.num_prompt_tokens
        self.is_active[row] = True

    def set_fault(self, row: int, fault: Failure) -> None:
        """Make each step of this row's sequence fail with `fault`, until the row is freed."""
        self.is_active[row] = False
        self.faults[row] = fault

    def record(self, rows: IntArray, positions: IntArray, token_ids: IntArray) -> None:
        """Take sampled tokens [R] at positions [R] as known; each is the next token of its row."""
        self.token_ids[rows, positions] = token_ids
        self.num_known[rows] = positions + 1

    def extend(self, row: int, token_ids: Sequence[int]) -> None:
        """Take tokens as known behind the last known one of a row."""
        start = int(self.num_known[row])
        self.token_ids[row, start : start + len(token_ids)] = token_ids
        self.num_known[row] = start + len(token_ids)

    def _fault_of(self, new: NewSequence) -> str | None:
        num_tokens = len(new.token_ids)
        if not 1 <= new.num_prompt_tokens <= num_tokens <= self.max_model_len:
            return (
                f"{num_tokens} tokens, {new.num_prompt_tokens} of them prompt, do not fit a row of {self.max_model_len}"
            )
        if min(new.token_ids) < 0 or max(new.token_ids) >= self._vocab_size:
            return f"a token id is outside the vocabulary of {self._vocab_size}"
        return None
