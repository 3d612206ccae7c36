"""StepPlan: what one step is to do, from the scheduler to the runner. A value; lists are parallel.

New sequences travel whole, old ones as differences. A *row* is the runner's persistent slot of a sequence; the
scheduler hands rows out, so that the runner needs no look-up by request id.
"""

from __future__ import annotations

import msgspec

from octavo.proto.sampling import SamplingParams


class NewSequence(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence that enters a row: new, or resumed after preemption or replay."""

    row: int
    request_id: str
    token_ids: list[int]
    """All tokens known to the scheduler: prompt, then output so far."""
    num_prompt_tokens: int
    sampling: SamplingParams
    seed: int
    eos_token_ids: tuple[int, ...]
    num_prompt_logprobs_known: int = 0
    """Prompt positions whose logprobs were already delivered (resumed sequences)."""


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One forward step.

    `rows[i]` computes positions `starts[i] .. starts[i] + num_tokens[i]`; `samples[i]` says whether its last position
    samples. Positions at or behind the known tokens of a row are filled from that row's own earlier samples (the
    executor runs plans in order). Draft tokens, where there are any, are the last `len(drafts[i])` of them.
    """

    step_id: int
    epoch: int
    """The engine's; results of a dead epoch change nothing."""
    freed_rows: list[int]
    """Rows to forget before anything else in this plan."""
    new: list[NewSequence]
    rows: list[int]
    starts: list[int]
    num_tokens: list[int]
    samples: list[bool]
    new_blocks: list[tuple[int, int, int, list[int]]]
    """(row, group, first logical block, block ids): block table entries to write, new rows' whole tables included."""
    drafts: dict[int, list[int]] = {}
    """index in `rows` -> draft tokens."""
    copies: list[tuple[int, int]] = []
    """(source block, destination block), before anything is computed."""

    @property
    def num_scheduled_tokens(self) -> int:
        """Tokens this step computes (T)."""
        return sum(self.num_tokens)
