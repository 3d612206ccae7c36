"""What an engine reports about itself, as values. Totals count from the engine's start and never go back.

Owns: the structs, and the bounds of the histograms that an engine keeps.   Does not own: counting, names of metrics.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from octavo.proto.output import FinishReason

Phase = Literal["plan", "batch", "forward", "sample", "output"]
"""Where an engine's time goes: planning, building the batch, layers, sampling, handling results."""
LossReason = Literal["full", "sliding_window", "recurrent", "last_token"]
"""Why cached tokens of a prompt could not be used: as core.kv's HitLosses."""
LOSS_REASONS: Final[tuple[LossReason, ...]] = ("full", "sliding_window", "recurrent", "last_token")
PHASES: Final[tuple[Phase, ...]] = ("plan", "batch", "forward", "sample", "output")

STEP_TOKENS_BOUNDS: Final = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
QUEUE_POSITION_BOUNDS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ROOFLINE_SHARE_BOUNDS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Histogram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a value fell where."""

    counts: list[int]
    """One for each bound, of values at most as large and above the bound before; one more for all above the last."""
    total: float
    """Sum of the values."""


class SchedulerStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A moment of the scheduler: gauges, then totals."""

    num_running: int
    num_waiting: int
    """Preempted requests included."""
    num_steps_in_flight: int
    kv_usage: float
    """Share of the usable blocks that are held, 0 .. 1; cached-idle blocks count as free."""
    num_steps: int
    """Steps planned."""
    num_failed_steps: int
    num_scheduled_tokens: int
    num_prompt_tokens: int
    """Those of them that compute prompts: what the prefix cache gave is not among them, a recomputation is."""
    num_preemptions: int
    num_faults: int
    """Requests ended by a fault of ours that concerned them alone: in their planning, their row or their finishing."""
    prefix_queries: int
    """Tokens of admitted requests that looked into the prefix cache."""
    prefix_hits: int
    """Those of them that were found."""
    num_finished: dict[FinishReason, int]
    prefix_losses: dict[LossReason, int]
    """Tokens that were cached and could not be used."""
    queue_positions: Histogram
    """Waiting requests ahead of a new one when it came, by QUEUE_POSITION_BOUNDS."""


class StepStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Totals over the steps that have returned."""

    num_steps: int
    phase_s: dict[Phase, float]
    """Seconds; phases of different steps may overlap where steps do."""
    planned_bytes: int
    """What the steps had to move at the least."""
    planned_flops: int
    """What the steps had to multiply and add at the least."""
    step_tokens: Histogram
    """Tokens computed in a step, by STEP_TOKENS_BOUNDS."""
    roofline_shares: Histogram | None = None
    """Least possible time of a step's forward pass over the measured one, by ROOFLINE_SHARE_BOUNDS.

    None: the machine's rates are not known.
    """


class GrammarStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compiled grammars that an engine keeps: a gauge, then totals."""

    num_kept_bytes: int = 0
    """Estimated from above; bounded."""
    num_queries: int = 0
    """Grammars that requests needed."""
    num_hits: int = 0
    """Those of them that were kept from before."""


class EngineStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything one engine counts."""

    scheduler: SchedulerStats
    steps: StepStats
    grammars: GrammarStats = GrammarStats()
    num_dropped_frames: int = 0
    """Frames that came in and were no messages."""
    engine_idx: int = 0
