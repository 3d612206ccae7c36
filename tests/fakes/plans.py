"""Short ways to write the plans of a runner test: rows with all their blocks given when they enter."""

from octavo.proto.plan import NewSequence, StepPlan
from octavo.proto.sampling import SamplingParams

GREEDY = SamplingParams(temperature=0.0)


def sequence(row: int, token_ids, *, num_prompt: int | None = None, sampling: SamplingParams = GREEDY, **fields):
    """A sequence for `row`; `fields`: seed, eos_token_ids, num_prompt_logprobs_known."""
    return NewSequence(
        row=row,
        request_id=f"r{row}",
        token_ids=list(token_ids),
        num_prompt_tokens=len(token_ids) if num_prompt is None else num_prompt,
        sampling=sampling,
        **{"seed": 0, "eos_token_ids": (), **fields},
    )


def blocks_for(row: int, num_blocks: int, *, num_groups: int = 1, first: int | None = None):
    """new_blocks of a whole row: `num_blocks` a group, the rows' blocks lying one behind the other."""
    base = 1 + row * num_blocks * num_groups if first is None else first
    return [
        (row, group, 0, list(range(base + group * num_blocks, base + (group + 1) * num_blocks)))
        for group in range(num_groups)
    ]


def plan(step_id: int, shares, *, new=(), new_blocks=(), freed=(), copies=(), drafts=None, epoch: int = 0) -> StepPlan:
    """shares: (row, start, number of tokens, samples) of each entry."""
    return StepPlan(
        step_id=step_id,
        epoch=epoch,
        freed_rows=list(freed),
        new=list(new),
        rows=[share[0] for share in shares],
        starts=[share[1] for share in shares],
        num_tokens=[share[2] for share in shares],
        samples=[share[3] for share in shares],
        new_blocks=list(new_blocks),
        copies=list(copies),
        drafts=drafts or {},
    )
