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
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import numpy.typing as npt

from octavo.base.errors import InvariantError
from octavo.kernels.ops import OpTable, SampleResult, Tensor
from octavo.models.cost import CostModel, StepCost
from octavo.models.interface import Model
from octavo.proto.kv import KvCacheSpec
from octavo.proto.plan import StepPlan
from octavo.proto.result import StepResult, StepTimings, TokenLogprobs
from octavo.runner.batch import StepBatch, build_batch, find_blockless, resolve, sequences_of
from octavo.runner.block_table import BlockTables
from octavo.runner.entries import StepEntries, read_entries
from octavo.runner.prompt_logprobs import PromptLogprobs, chunk_rows, find_ranges
from octavo.runner.rows import TokenRows
from octavo.runner.sampling import as_token_logprobs, build_sample_batch
from octavo.runner.sampling_table import SamplingTable

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class PreparedStep:
    """A plan whose batch is built; its pending tokens may still be unknown."""

    plan: StepPlan
    batch: StepBatch
    failed: dict[int, str]
    batch_s: float


@dataclass(slots=True)
class _Outcome:
    """What a step has produced so far, by index in the plan."""

    token_ids: list[list[int]]
    logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)
    prompt_logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)


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
    ) -> None:
        self.cache = ops.allocate_kv(cache_spec)
        self._model = model
        self._ops = ops
        self._cost_model = cost_model
        self._max_num_batched_tokens = max_num_batched_tokens
        vocab_size = model.spec.vocab_size
        self._rows = TokenRows(max_num_seqs=max_num_seqs, max_model_len=max_model_len, vocab_size=vocab_size)
        self._tables = BlockTables(cache_spec, max_num_seqs=max_num_seqs, max_model_len=max_model_len)
        self._sampling = SamplingTable(max_num_seqs=max_num_seqs, vocab_size=vocab_size)
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
        plan, failed = prepared.plan, prepared.failed
        outcome = _Outcome([[] for _ in plan.rows])
        started = perf_counter()
        if plan.copies:
            self._ops.copy_blocks(self.cache, plan.copies)
        batch = self._resolve(prepared.batch, failed)
        resolved = perf_counter()
        forward_s = 0.0
        if batch.num_tokens:
            hidden = self._model.forward(batch.forward, self.cache)
            forward_s = perf_counter() - resolved
            self._check_hidden(batch, hidden, failed)
            self._collect_prompt_logprobs(batch, hidden, outcome, failed)
            self._sample(batch, hidden, outcome, failed)
        sampled = perf_counter()
        cost = self._cost_of(batch)
        return StepResult(
            step_id=plan.step_id,
            epoch=plan.epoch,
            token_ids=outcome.token_ids,
            logprobs=outcome.logprobs,
            prompt_logprobs=outcome.prompt_logprobs,
            failed=failed,
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
        if plan.new and self._unfinished:
            busy = {row for step in self._unfinished for row in step.plan.rows}
            taken = busy.intersection(new.row for new in plan.new)
            if taken:
                raise InvariantError(f"step {plan.step_id} refills rows {sorted(taken)} of a step that is unfinished")
        for new in plan.new:
            self._tables.clear(new.row)
            self._rows.admit(new)
            fault = self._sampling.admit(new)
            if fault is not None:
                self._rows.set_fault(new.row, fault)
        self._tables.write(plan.new_blocks)

    def _build(self, entries: StepEntries) -> StepBatch:
        return build_batch(entries, self._rows, self._tables, find_ranges(entries, self._rows, self._sampling))

    def _resolve(self, batch: StepBatch, failed: dict[int, str]) -> StepBatch:
        """Fill the pending tokens; sequences whose tokens are still unknown leave the batch."""
        complete = resolve(batch, self._rows)
        if complete is None:
            return batch
        batch = self._drop(batch, complete, failed, "the step that was to sample this sequence's tokens failed")
        resolve(batch, self._rows)
        return batch

    def _drop(self, batch: StepBatch, kept: Mask, failed: dict[int, str], reason: str) -> StepBatch:
        """The batch without the sequences where `kept` [S] is false, which fail."""
        for index in batch.entries.indices[~kept].tolist():
            failed[index] = reason
        return self._build(batch.entries.keep(kept))

    # ---- after the forward --------------------------------------------------------------------------------------

    def _check_hidden(self, batch: StepBatch, hidden: Tensor, failed: dict[int, str]) -> None:
        """Fail the sequences of which a hidden state is not finite: their K and V must never be published.

        A key or value that is not finite spoils the hidden state of its own position, since a token attends to itself.
        Where every token is sampled from, the check of the logits says the same.
        """
        if len(batch.sampling) == batch.num_tokens:
            return
        finite = self._ops.finite_rows(hidden)
        if finite.all():
            return
        for seq in set(sequences_of(batch, np.flatnonzero(~finite)).tolist()):
            failed[int(batch.entries.indices[seq])] = "the model's hidden states are not finite"

    def _collect_prompt_logprobs(
        self, batch: StepBatch, hidden: Tensor, outcome: _Outcome, failed: dict[int, str]
    ) -> None:
        found, wrong = self._prompts.compute(batch, lambda rows: self._model.logits(hidden, rows))
        outcome.prompt_logprobs.update(found)
        failed.update(wrong)

    def _sample(self, batch: StepBatch, hidden: Tensor, outcome: _Outcome, failed: dict[int, str]) -> None:
        """Sample where the plan says so, record the tokens in the rows and in the outcome."""
        if not len(batch.sampling):
            return
        entries = batch.entries
        rows_idx, positions = entries.rows[batch.sampling], entries.ends[batch.sampling]
        logits = self._model.logits(hidden, batch.sample_rows)
        result = self._ops.sample(logits, build_sample_batch(rows_idx, positions, self._rows, self._sampling))
        indices = entries.indices[batch.sampling].tolist()
        good = result.finite & ~result.exhausted
        for place in np.flatnonzero(~good).tolist():
            failed[indices[place]] = self._why_unsampled(int(rows_idx[place]))
        if failed:
            good = good & np.array([index not in failed for index in indices])
        self._rows.record(rows_idx[good], positions[good], result.token_ids[good])
        _fill(outcome, indices, good, result)

    def _cost_of(self, batch: StepBatch) -> StepCost:
        if self._cost_model is None or not batch.num_tokens:
            return StepCost(num_bytes=0, num_flops=0)
        forward = batch.forward
        return self._cost_model.step(batch.entries.num_tokens, forward.seq_lens, len(forward.logit_rows))

    def _why_unsampled(self, row: int) -> str:
        if self._sampling.is_special[row]:
            return "the model's logits are not finite, or the masks of this request left no token to choose"
        return "the model's logits are not finite"


def _fill(outcome: _Outcome, indices: list[int], good: Mask, result: SampleResult) -> None:
    token_ids = result.token_ids.tolist()
    for place, is_good in enumerate(good.tolist()):
        if not is_good:
            continue
        index = indices[place]
        outcome.token_ids[index] = [token_ids[place]]
        found = result.logprobs[place]
        if found is not None:
            outcome.logprobs[index] = [as_token_logprobs(found)]
