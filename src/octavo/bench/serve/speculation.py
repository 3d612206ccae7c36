"""Speculative decoding during a run, from the server's own counters before and after it.

Owns: reading vLLM's spec_decode counters from /metrics, their differences.   Does not own: fetching.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"^vllm:spec_decode_(num_\w+?)(?:_total)?(?:\{(.*)\})? ([0-9.eE+-]+)$", re.MULTILINE)
_POSITION = re.compile(r'position="(\d+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationCounters:
    """Counters since the server's start, summed over its engines."""

    num_drafts: float = 0.0
    num_draft_tokens: float = 0.0
    num_accepted_tokens: float = 0.0
    accepted_by_position: dict[int, float] = field(default_factory=dict)

    def since(self, before: SpeculationCounters) -> SpeculationCounters:
        """What happened after `before`."""
        earlier = before.accepted_by_position
        return SpeculationCounters(
            num_drafts=self.num_drafts - before.num_drafts,
            num_draft_tokens=self.num_draft_tokens - before.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens - before.num_accepted_tokens,
            accepted_by_position={
                position: count - earlier.get(position, 0.0) for position, count in self.accepted_by_position.items()
            },
        )

    @property
    def acceptance_rate(self) -> float:
        """Percent of draft tokens."""
        return 100 * self.num_accepted_tokens / self.num_draft_tokens if self.num_draft_tokens else 0.0

    @property
    def acceptance_length(self) -> float:
        """Tokens per draft, the target model's own included."""
        return 1 + self.num_accepted_tokens / self.num_drafts if self.num_drafts else 0.0

    @property
    def rates_by_position(self) -> list[float]:
        """Share of drafts whose token at each position was accepted."""
        return [count / self.num_drafts for _, count in sorted(self.accepted_by_position.items()) if self.num_drafts]


def parse_counters(text: str) -> SpeculationCounters | None:
    """From the text of /metrics (Prometheus); None for a server that has no such counters."""
    totals: dict[str, float] = {}
    by_position: dict[int, float] = {}
    for name, labels, value in _LINE.findall(text):
        position = _POSITION.search(labels)
        if name == "num_accepted_tokens_per_pos" and position:
            by_position[int(position[1])] = by_position.get(int(position[1]), 0.0) + float(value)
        else:
            totals[name] = totals.get(name, 0.0) + float(value)
    if not totals:
        return None
    return SpeculationCounters(
        num_drafts=totals.get("num_drafts", 0.0),
        num_draft_tokens=totals.get("num_draft_tokens", 0.0),
        num_accepted_tokens=totals.get("num_accepted_tokens", 0.0),
        accepted_by_position=by_position,
    )
