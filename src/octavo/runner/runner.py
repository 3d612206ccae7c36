"""ModelRunner: carries out one StepPlan on one device.

Owns: the rows, the KV memory of the device, the order of work within a step.
Does not own: planning (core), when a step runs (executor), arithmetic (ops, model).
Invariants: plans are prepared in order and finished in order. A step may be prepared while earlier ones are unfinished;
it then sees their samples when it is finished. What is wrong with one sequence fails its entry alone; an exception
fails the step, and its sampled tokens stay unknown.
Thread: one at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from octavo.base.errors import InvariantError
from octavo.kernels.ops import OpTable
from octavo.models.cost import CostModel, StepCost
from octavo.models.interface import Hidden, Model
from octavo.proto.failure import Failure
from octavo.proto.kv import KvCacheSpec
from octavo.proto.plan import StepPlan
from octavo.proto.result import StepResult, StepTimings
from octavo.runner.batch import StepBatch, build_batch, find_blockless, resolve, sequences_of
from octavo.runner.block_table import BlockTables
from octavo.runner.constraints import GrammarSource, RowConstraints
from octavo.runner.entries import StepEntries, read_entries
from octavo.runner.prompt_logprobs import PromptLogprobs, chunk_rows, find_ranges
from octavo.runner.rows import TokenRows
from octavo.runner.sampler import Sampler, StepOutcome
from octavo.runner.sampling_table import SamplingTable

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class PreparedStep:
    """A plan whose batch is built; its pending tokens may still be unknown."""

    plan: StepPlan
    batch: StepBatch
    failed: dict[int, Failure]
    batch_s: float


class ModelRunner:
    """Rows, batches and samples of one model on one device. Allocates the KV memory when made."""

    def __init__(
        self,
        model: Model,
        ops: OpTable,
        cache_spec: KvCacheSpec,
        *,
        max_num_seqs: int,
        max_model_len: int,
        max_num_batched_tokens: int,
        cost_model: CostModel | None = None,
        grammars: GrammarSource | None = None,
    ) -> None:
        """grammars: those of constrained sequences; None: such sequences fail."""
        self.cache = ops.allocate_kv(cache_spec)
        self._model = model
        self._ops = ops
        self._cost_model = cost_model
        self._max_num_batched_tokens = max_num_batched_tokens
        vocab_size = model.spec.vocab_size
        self._rows = TokenRows(max_num_seqs=max_num_seqs, max_model_len=max_model_len, vocab_size=vocab_size)
        self._tables = BlockTables(cache_spec, max_num_seqs=max_num_seqs, max_model_len=max_model_len)
        self._sampling = SamplingTable(max_num_seqs=max_num_seqs, vocab_size=vocab_size)
        self._constraints = RowConstraints(grammars, max_num_seqs=max_num_seqs)
        self._sampler = Sampler(ops, self._rows, self._sampling, self._constraints, vocab_size=vocab_size)
        self._prompts = PromptLogprobs(ops, self._rows, self._sampling, max_rows=chunk_rows(vocab_size))
        self._unfinished: deque[PreparedStep] = deque()

    def execute(self, plan: StepPlan) -> StepResult:
        """Carry out a plan. Raises InvariantError for one that contradicts the rows, and whatever the device raises."""
        return self.finish(self.prepare(plan))

    def prepare(self, plan: StepPlan) -> PreparedStep:
        """Bring the rows up to date and build the batch. Nothing is computed; earlier steps need not have finished.

        Raises InvariantError when a row is given away that an unfinished step still computes, or the plan is too large.
        """
        started = perf_counter()
        if plan.num_scheduled_tokens > self._max_num_batched_tokens:
            raise InvariantError(
                f"step {plan.step_id} has {plan.num_scheduled_tokens} tokens, more than {self._max_num_batched_tokens}"
            )
        self._update_rows(plan)
        entries, failed = read_entries(plan, self._rows)
        batch = self._build(entries)
        complete = find_blockless(batch, self._tables.block_size)
        if complete is not None:
            batch = self._drop(batch, complete, failed, "a token has no block to be written to")
        prepared = PreparedStep(plan=plan, batch=batch, failed=failed, batch_s=perf_counter() - started)
        self._unfinished.append(prepared)
        return prepared

    def finish(self, prepared: PreparedStep) -> StepResult:
        """Compute and sample a prepared step. Raises InvariantError out of order, and whatever the device raises."""
        if not self._unfinished or self._unfinished[0] is not prepared:
            raise InvariantError(f"step {prepared.plan.step_id} is not the oldest that was prepared")
        self._unfinished.popleft()
        plan = prepared.plan
        outcome = StepOutcome([[] for _ in plan.rows], prepared.failed)
        started = perf_counter()
        if plan.copies:
            self._ops.copy_blocks(self.cache, plan.copies)
        batch = self._resolve(self._without_ended(prepared.batch, outcome), outcome.failed)
        resolved = perf_counter()
        forward_s = 0.0
        if batch.num_tokens:
            draw = self._sampler.begin(batch, outcome)
            hidden = self._model.forward(batch.forward, self.cache)
            forward_s = perf_counter() - resolved
            self._check_hidden(batch, hidden, outcome.failed)
            self._collect_prompt_logprobs(batch, hidden, outcome)
            self._sampler.finish(draw, lambda rows: self._model.logits(hidden, rows), outcome)
        sampled = perf_counter()
        cost = self._cost_of(batch)
        return StepResult(
            step_id=plan.step_id,
            epoch=plan.epoch,
            token_ids=outcome.token_ids,
            logprobs=outcome.logprobs,
            prompt_logprobs=outcome.prompt_logprobs,
            failed=outcome.failed,
            ends=outcome.ends,
            timings=StepTimings(
                batch_s=prepared.batch_s + resolved - started,
                forward_s=forward_s,
                sample_s=sampled - resolved - forward_s,
                planned_bytes=cost.num_bytes,
                planned_flops=cost.num_flops,
            ),
        )

    # ---- before the forward -------------------------------------------------------------------------------------

    def _update_rows(self, plan: StepPlan) -> None:
        """Free, admit, and write the block tables."""
        self._rows.free(plan.freed_rows)
        if not self._unfinished:  # else their constraints may still be needed, and go when the row is filled again
            self._constraints.free(plan.freed_rows)
        if plan.new and self._unfinished:
            busy = {row for step in self._unfinished for row in step.plan.rows}
            taken = busy.intersection(new.row for new in plan.new)
            if taken:
                raise InvariantError(f"step {plan.step_id} refills rows {sorted(taken)} of a step that is unfinished")
        for new in plan.new:
            self._tables.clear(new.row)
            self._rows.admit(new)
            fault = self._sampling.admit(new)
            may_jump = not new.sampling.wants_logprobs and not self._sampling.bans_tokens(new.row)
            fault = fault or self._constraints.admit(new, may_jump=may_jump)
            if fault is not None:
                self._rows.set_fault(new.row, fault)
        self._tables.write(plan.new_blocks)

    def _build(self, entries: StepEntries) -> StepBatch:
        return build_batch(entries, self._rows, self._tables, find_ranges(entries, self._rows, self._sampling))

    def _without_ended(self, batch: StepBatch, outcome: StepOutcome) -> StepBatch:
        """The batch without sequences that ended in a step before this one was known: nothing follows their end."""
        ended = self._constraints.ended
        if not ended:
            return batch
        entries = batch.entries
        is_ended = np.isin(entries.rows, list(ended))
        if not is_ended.any():
            return batch
        for index, row in zip(entries.indices[is_ended].tolist(), entries.rows[is_ended].tolist(), strict=True):
            outcome.ends[index] = ended[row]
        return self._build(entries.keep(~is_ended))

    def _resolve(self, batch: StepBatch, failed: dict[int, Failure]) -> StepBatch:
        """Fill the pending tokens; sequences whose tokens are still unknown leave the batch."""
        complete = resolve(batch, self._rows)
        if complete is None:
            return batch
        batch = self._drop(batch, complete, failed, "the step that was to sample this sequence's tokens failed")
        resolve(batch, self._rows)
        return batch

    def _drop(self, batch: StepBatch, kept: Mask, failed: dict[int, Failure], reason: str) -> StepBatch:
        """The batch without the sequences where `kept` [S] is false, which fail."""
        for index in batch.entries.indices[~kept].tolist():
            failed[index] = Failure("internal", reason)
        return self._build(batch.entries.keep(kept))

    # ---- after the forward --------------------------------------------------------------------------------------

    def _check_hidden(self, batch: StepBatch, hidden: Hidden, failed: dict[int, Failure]) -> None:
        """Fail the sequences of which a token is not finite: their K and V must never be published.

        A key or value that is not finite spoils what its own position finds, since a token attends to itself. Where
        the logits of every token are looked at, their check says the same.
        """
        if hidden.is_finite is None or hidden.is_finite.all():
            return
        for seq in set(sequences_of(batch, np.flatnonzero(~hidden.is_finite)).tolist()):
            failed[int(batch.entries.indices[seq])] = Failure("numeric", "the model's hidden states are not finite")

    def _collect_prompt_logprobs(self, batch: StepBatch, hidden: Hidden, outcome: StepOutcome) -> None:
        found, wrong = self._prompts.compute(batch, lambda rows: self._model.logits(hidden, rows))
        outcome.prompt_logprobs.update(found)
        outcome.failed.update(wrong)

    def _cost_of(self, batch: StepBatch) -> StepCost:
        if self._cost_model is None or not batch.num_tokens:
            return StepCost(num_bytes=0, num_flops=0)
        forward = batch.forward
        return self._cost_model.step(batch.entries.num_tokens, forward.seq_lens, len(forward.logit_rows))
