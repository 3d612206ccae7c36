"""Two engines on the same workloads, side by side: a table of ratios and a bar chart.

Owns: reading files of `octavo bench workloads --output-json` (and of whoever writes the same keys), ratios.
Does not own: the runs (workloads.py), the picture (compare_png.py).
A workload of one output token is compared by its input tokens per second, any other by its output tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo.base.errors import ConfigError, ConfigProblem, OctavoError


@dataclass(frozen=True, slots=True)
class WorkloadRate:
    """Tokens per second of one workload."""

    name: str
    tokens_per_s: float
    unit: str
    """"in" or "out": which tokens."""


@dataclass(frozen=True, slots=True)
class EngineRates:
    """One file."""

    engine: str
    rates: tuple[WorkloadRate, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Workloads that are in both files, in the order of the second."""

    base: EngineRates
    other: EngineRates

    @property
    def pairs(self) -> list[tuple[WorkloadRate, WorkloadRate]]:
        """(base, other) by workload."""
        by_name = {rate.name: rate for rate in self.base.rates}
        return [(by_name[rate.name], rate) for rate in self.other.rates if rate.name in by_name]

    def __str__(self) -> str:
        head = f"{'workload':<20}{'tok/s of':>9}{self.base.engine[:15]:>17}{self.other.engine[:15]:>17}{'ratio':>8}"
        return "\n".join(
            [head]
            + [
                f"{base.name:<20}{base.unit:>9}{base.tokens_per_s:>17,.1f}{other.tokens_per_s:>17,.1f}"
                f"{other.tokens_per_s / base.tokens_per_s:>8.2f}"
                for base, other in self.pairs
            ]
        )


def compare(base: EngineRates, other: EngineRates) -> Comparison:
    """Raises OctavoError when they have no workload in common."""
    found = Comparison(base, other)
    if not found.pairs:
        raise OctavoError(f"{base.engine} and {other.engine} have no workload in common")
    return found


def read_rates(path: Path, label: str | None = None) -> EngineRates:
    """A file's rates; the engine is called `label`, or what the file says, or the file's name. Raises ConfigError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rates = tuple(_rate_of(workload) for workload in found["workloads"])
        return EngineRates(label or str(found.get("engine") or path.stem), rates)
    except OSError as error:
        raise ConfigError([ConfigProblem("file", str(path), f"cannot be read: {error.strerror or error}")]) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "must be what `octavo bench workloads --output-json` writes"
        raise ConfigError([ConfigProblem("file", str(path), remedy)]) from error


def _rate_of(workload: dict[str, object]) -> WorkloadRate:
    is_prefill = workload.get("output_len") == 1 or str(workload["name"]).startswith("prefill")
    key = "input_tokens_per_second" if is_prefill else "output_tokens_per_second"
    rate = float(str(workload[key]))
    if not rate > 0:
        raise ValueError(f"{key} must be above 0")
    return WorkloadRate(str(workload["name"]), rate, "in" if is_prefill else "out")


def parse_labels(labels: Sequence[str] | None) -> tuple[str | None, str | None]:
    """Names for both engines, or none."""
    return (None, None) if labels is None else (labels[0], labels[1])
