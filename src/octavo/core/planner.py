"""From decisions to a StepPlan: new sequences whole, old ones as differences.

Owns: the wire form of a step. Does not own: the decisions (`planning.py`), the rows (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from octavo.core.planning import Decision
from octavo.core.request import Request
from octavo.proto.plan import NewSequence, StepPlan


def build_step_plan(step_id: int, epoch: int, decisions: Sequence[Decision], freed_rows: list[int]) -> StepPlan:
    """The plan of one step; every request decided on has its row by now. Cost: under 1 us a decision."""
    rows: list[int] = []
    starts: list[int] = []
    num_tokens: list[int] = []
    samples: list[bool] = []
    new: list[NewSequence] = []
    new_blocks: list[tuple[int, int, int, list[int]]] = []
    for decision in decisions:
        row = decision.request.row
        frame = decision.frame
        rows.append(row)
        starts.append(frame.start)
        num_tokens.append(frame.num_tokens)
        samples.append(frame.samples)
        for group, first, block_ids in decision.new_blocks:
            new_blocks.append((row, group, first, block_ids))
        if decision.is_admission:
            new.append(_whole(decision.request))
    return StepPlan(
        step_id=step_id,
        epoch=epoch,
        freed_rows=freed_rows,
        new=new,
        rows=rows,
        starts=starts,
        num_tokens=num_tokens,
        samples=samples,
        new_blocks=new_blocks,
    )


def _whole(request: Request) -> NewSequence:
    client = request.client
    return NewSequence(
        row=request.row,
        request_id=request.request_id,
        token_ids=list(request.token_ids),
        num_prompt_tokens=request.num_prompt_tokens,
        sampling=client.sampling,
        seed=client.seed,
        eos_token_ids=client.eos_token_ids,
        num_prompt_logprobs_known=request.num_prompt_logprobs,
    )
