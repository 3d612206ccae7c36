"""Sampling of one step: who samples, under which masks, and what becomes of the tokens.

Owns: the order of work around the op `sample`.   Does not own: logits, the choice of a token (ops), rows' constants.
Invariants: a position that is known already is not sampled again (docs/decisions/0013): steps planned before a forced
token was found come to such positions, and answer with what is known. Nothing is recorded for a sequence that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import IntArray, OpTable, SampleResult, Tensor
from octavo.proto.failure import Failure
from octavo.proto.result import TokenLogprobs
from octavo.runner.batch import StepBatch
from octavo.runner.constraints import RowConstraints
from octavo.runner.masks import MaskJob, MaskThread
from octavo.runner.rows import TokenRows
from octavo.runner.sampling import as_token_logprobs, build_sample_batch
from octavo.runner.sampling_table import SamplingTable


@dataclass(slots=True)
class StepOutcome:
    """What a step has produced so far, by index in the plan."""

    token_ids: list[list[int]]
    failed: dict[int, Failure]
    logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)
    prompt_logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)
    ends: dict[int, Failure | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draw:
    """The R sequences of a batch whose next token is not known yet."""

    indices: list[int]
    """[R] places in the plan."""
    rows: IntArray
    """[R]"""
    positions: IntArray
    """[R] of the tokens to be sampled."""
    logit_rows: IntArray
    """[R] places in T."""
    job: MaskJob

    def __len__(self) -> int:
        return len(self.indices)


class Sampler:
    """`begin` before the forward pass, `finish` behind it; both once a step."""

    def __init__(
        self, ops: OpTable, rows: TokenRows, table: SamplingTable, constraints: RowConstraints, *, vocab_size: int
    ) -> None:
        self._ops = ops
        self._rows = rows
        self._table = table
        self._constraints = constraints
        self._masks = MaskThread(vocab_size)

    def begin(self, batch: StepBatch, outcome: StepOutcome) -> Draw:
        """Find who samples, and start to make their masks. All tokens of the batch are known."""
        sampling, logit_rows = self._answer_known(batch, outcome)
        rows = batch.entries.rows[sampling]
        self._masks.wait()
        job = self._masks.start(self._constraints.among(rows))
        return Draw(batch.entries.indices[sampling].tolist(), rows, batch.entries.ends[sampling], logit_rows, job)

    def _answer_known(self, batch: StepBatch, outcome: StepOutcome) -> tuple[npt.NDArray[np.intp], IntArray]:
        """Answer positions that are known already. Returns the others: [R] places in the batch, [R] places in T."""
        sampling, entries = batch.sampling, batch.entries
        rows, positions = entries.rows[sampling], entries.ends[sampling]
        num_known = self._rows.num_known[rows]
        is_known = num_known > positions
        if not is_known.any():
            return sampling, batch.sample_rows
        for place in np.flatnonzero(is_known).tolist():
            known = self._rows.token_ids[rows[place], positions[place] : num_known[place]]
            outcome.token_ids[int(entries.indices[sampling[place]])] = known.tolist()
        return sampling[~is_known], batch.sample_rows[~is_known]

    def finish(self, draw: Draw, logits_of: Callable[[IntArray], Tensor], outcome: StepOutcome) -> None:
        """Sample, record the tokens in the rows and in the outcome."""
        if not len(draw):
            return
        logits = logits_of(draw.logit_rows)
        self._masks.wait()
        batch = build_sample_batch(draw.rows, draw.positions, self._rows, self._table, draw.job.masks)
        result = self._ops.sample(logits, batch)
        good = self._find_good(draw, result, outcome)
        self._rows.record(draw.rows[good], draw.positions[good], result.token_ids[good])
        _fill(outcome, draw.indices, good, result)
        self._follow_constraints(draw, good, result, outcome)

    def _find_good(self, draw: Draw, result: SampleResult, outcome: StepOutcome) -> npt.NDArray[np.bool_]:
        """[R] which rows have a token that counts; the others have failed or ended."""
        good = result.finite
        for place in np.flatnonzero(~good).tolist():
            outcome.failed[draw.indices[place]] = Failure("numeric", "the model's logits are not finite")
        if outcome.failed:
            good = good & np.array([index not in outcome.failed for index in draw.indices])
        errors = draw.job.errors
        if not errors and not result.exhausted.any():
            return good
        good = good.copy()
        for place in sorted(errors.keys() | set(np.flatnonzero(result.exhausted).tolist())):
            if good[place]:
                good[place] = False
                row = int(draw.rows[place])
                error = errors.get(place)
                taken = self._constraints.note_error(row, error) if error else self._constraints.note_nothing_left(row)
                outcome.ends[draw.indices[place]] = taken.error
        return good

    def _follow_constraints(
        self, draw: Draw, good: npt.NDArray[np.bool_], result: SampleResult, outcome: StepOutcome
    ) -> None:
        """Tell constrained rows their tokens; take the tokens and ends that follow from them."""
        for place in self._constraints.among(draw.rows):
            if not good[place]:
                continue
            row, index, position = int(draw.rows[place]), draw.indices[place], int(draw.positions[place])
            room = max(0, self._rows.max_model_len - position - 1)
            taken = self._constraints.take(row, int(result.token_ids[place]), room=room)
            if taken.forced:
                self._rows.extend(row, taken.forced)
                outcome.token_ids[index] += taken.forced
            if taken.is_end:
                outcome.ends[index] = taken.error


def _fill(outcome: StepOutcome, indices: list[int], good: npt.NDArray[np.bool_], result: SampleResult) -> None:
    token_ids = result.token_ids.tolist()
    for place, is_good in enumerate(good.tolist()):
        if not is_good:
            continue
        index = indices[place]
        outcome.token_ids[index] = [token_ids[place]]
        found = result.logprobs[place]
        if found is not None:
            outcome.logprobs[index] = [as_token_logprobs(found)]
