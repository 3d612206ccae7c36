"""What the scheduler may spend: the limits of its whole life, and what is left of them in one step.

Owns: the numbers and their consistency. Does not own: who gets them (`policy.py`, `planning.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.base.errors import ConfigError, ConfigProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerLimits:
    """Limits that never change while an engine runs. Raises ConfigError, naming all that does not go together."""

    max_num_seqs: int
    """Rows: sequences that may run at the same time."""
    max_num_batched_tokens: int
    """Tokens one step computes at most."""
    max_model_len: int
    """Prompt and output tokens of one sequence at most."""
    long_prefill_token_threshold: int = 0
    """A sequence computes at most so many tokens a step, unless it is alone; 0 is no such limit."""
    enable_chunked_prefill: bool = True
    """False: the known tokens of a sequence enter in one step or not yet."""
    max_steps_in_flight: int = 1
    """Steps planned and not returned at most (the depth); above 1 planning overlaps execution."""
    max_bypass: int = 8
    """How many waiting requests may pass one that does not fit now; then nobody passes it."""

    def __post_init__(self) -> None:
        problems = [
            ConfigProblem(name, getattr(self, name), f"must be at least {least}")
            for name, least in (
                ("max_num_seqs", 1),
                ("max_num_batched_tokens", 1),
                ("max_model_len", 2),
                ("long_prefill_token_threshold", 0),
                ("max_steps_in_flight", 1),
                ("max_bypass", 0),
            )
            if getattr(self, name) < least
        ]
        if self.max_num_batched_tokens < self.max_num_seqs:
            remedy = f"must be at least max_num_seqs={self.max_num_seqs}, or some sequences would never advance"
            problems.append(ConfigProblem("max_num_batched_tokens", self.max_num_batched_tokens, remedy))
        if not self.enable_chunked_prefill and self.max_num_batched_tokens < self.max_model_len:
            remedy = f"without chunked prefill it must be at least max_model_len={self.max_model_len}"
            problems.append(ConfigProblem("max_num_batched_tokens", self.max_num_batched_tokens, remedy))
        if problems:
            raise ConfigError(problems)


@dataclass(slots=True)
class Budgets:
    """What is left to spend in the step being planned. A feature enters planning as a field here, not as a branch."""

    tokens: int
    sequences: int
    """Rows still free."""
    encoder: int = 0
    """Encoder embeddings; nothing draws on it while inputs are text."""
    adapters: int = 0
    """Distinct adapters that may still join; nothing draws on it while there are none."""
