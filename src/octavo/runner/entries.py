"""The share of each sequence in a step, as arrays: StepPlan's parallel lists without those that cannot be computed.

Owns: the check of an entry against its row.   Does not own: rows, batches.
Invariant: every entry that is kept lies within its active row, computes at least one position and has no draft tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.base.errors import InvariantError
from octavo.kernels.ops import IntArray
from octavo.proto.failure import Failure
from octavo.proto.plan import StepPlan
from octavo.runner.rows import TokenRows


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEntries:
    """Arrays [S], one element a sequence of the batch."""

    indices: IntArray
    """Places in the plan's lists, ascending."""
    rows: IntArray
    starts: IntArray
    num_tokens: IntArray
    samples: npt.NDArray[np.bool_]

    @property
    def ends(self) -> IntArray:
        """[S] first position behind this step's share: where the next token goes."""
        return self.starts + self.num_tokens

    def keep(self, kept: npt.NDArray[np.bool_]) -> StepEntries:
        """Those where `kept` [S] is true."""
        return StepEntries(
            indices=self.indices[kept],
            rows=self.rows[kept],
            starts=self.starts[kept],
            num_tokens=self.num_tokens[kept],
            samples=self.samples[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRanges:
    """Positions first [S] .. last [S] of each sequence whose logits are wanted for prompt logprobs; empty if equal."""

    first: IntArray
    last: IntArray


def read_entries(plan: StepPlan, table: TokenRows) -> tuple[StepEntries, dict[int, Failure]]:
    """The entries of a plan that can be computed, and for each of the others its index and the reason.

    Raises InvariantError for a row that does not exist.
    """
    if plan.rows and not 0 <= min(plan.rows) <= max(plan.rows) < table.max_num_seqs:
        raise InvariantError(f"step {plan.step_id} names a row outside 0 .. {table.max_num_seqs - 1}")
    entries = StepEntries(
        indices=np.arange(len(plan.rows), dtype=np.int32),
        rows=np.array(plan.rows, np.int32),
        starts=np.array(plan.starts, np.int32),
        num_tokens=np.array(plan.num_tokens, np.int32),
        samples=np.array(plan.samples, np.bool_),
    )
    usable = (entries.starts >= 0) & (entries.num_tokens >= 1) & (entries.ends <= table.max_model_len)
    usable &= table.is_active[entries.rows]
    if plan.drafts:
        usable[list(plan.drafts)] = False
    if usable.all():
        return entries, {}
    failed = {int(index): _reason(plan, int(index), table) for index in np.flatnonzero(~usable)}
    return entries.keep(usable), failed


def _reason(plan: StepPlan, index: int, table: TokenRows) -> Failure:
    row = plan.rows[index]
    return table.faults[row] if row in table.faults else Failure("internal", _contradiction(plan, index, table))


def _contradiction(plan: StepPlan, index: int, table: TokenRows) -> str:
    row = plan.rows[index]
    if not table.is_active[row]:
        return f"row {row} holds no sequence"
    if index in plan.drafts:
        return "draft tokens cannot be verified by this runner"
    end = plan.starts[index] + plan.num_tokens[index]
    return f"positions {plan.starts[index]} .. {end} are not a share of a row of {table.max_model_len}"
