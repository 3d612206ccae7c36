"""Plans that touch every path of a step once, before the first request: memory is mapped, threads run, caches are warm.

Owns: the shape of the warm-up.   Does not own: running it (the runner executes it like any plan).
Invariant: the last plan frees every row; only free blocks were written, and masked or rewritten positions are all that
later sequences see of them.
"""

from __future__ import annotations

from octavo.proto.kv import KvCacheSpec
from octavo.proto.plan import NewSequence, StepPlan
from octavo.proto.sampling import SamplingParams

MAX_WARMUP_TOKENS = 64


def make_warmup_plans(
    spec: KvCacheSpec, *, max_num_seqs: int, max_model_len: int, max_num_batched_tokens: int
) -> list[StepPlan]:
    """One prompt as long as a step allows (64 at most), one decode of it, and the end. Needs all blocks to be free.

    An empty list when the pool cannot hold even a prompt of one token.
    """
    blocks_per_group = (spec.num_blocks - 1) // len(spec.groups)
    num_tokens = min(
        MAX_WARMUP_TOKENS, max_num_batched_tokens, max_model_len - 1, blocks_per_group * spec.block_size - 1
    )
    if num_tokens < 1 or max_num_seqs < 1:
        return []
    num_blocks = num_tokens // spec.block_size + 1
    sequence = NewSequence(
        row=0,
        request_id="warm-up",
        token_ids=[0] * num_tokens,
        num_prompt_tokens=num_tokens,
        sampling=SamplingParams(),
        seed=0,
        eos_token_ids=(),
    )
    new_blocks = [
        (0, group, 0, list(range(1 + group * num_blocks, 1 + (group + 1) * num_blocks)))
        for group in range(len(spec.groups))
    ]
    return [
        _plan(-3, new=[sequence], new_blocks=new_blocks, start=0, num_tokens=num_tokens),
        _plan(-2, new=[], new_blocks=[], start=num_tokens, num_tokens=1),
        StepPlan(
            step_id=-1, epoch=0, freed_rows=[0], new=[], rows=[], starts=[], num_tokens=[], samples=[], new_blocks=[]
        ),
    ]


def _plan(
    step_id: int,
    *,
    new: list[NewSequence],
    new_blocks: list[tuple[int, int, int, list[int]]],
    start: int,
    num_tokens: int,
) -> StepPlan:
    return StepPlan(
        step_id=step_id,
        epoch=0,
        freed_rows=[],
        new=new,
        rows=[0],
        starts=[start],
        num_tokens=[num_tokens],
        samples=[True],
        new_blocks=new_blocks,
    )
