"""Whether a soak left something behind: quiet readings compared with the first of them.

Owns: the rules, text and JSON of the result.   Does not own: readings (watch.py), pictures (plot.py). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from octavo.bench.soak.watch import MIB, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    """A soak from its start to its end."""

    readings: Sequence[Reading]
    counts: Mapping[str, int]
    problems: Sequence[str]
    missing_kinds: Sequence[str]
    """What the server does not know, and nobody asked."""
    max_growth_mib: float

    @property
    def findings(self) -> list[str]:
        """What is wrong, a line each; empty: nothing."""
        return [*find_leaks(self.readings, self.max_growth_mib), *self.problems]

    def as_json(self) -> dict[str, object]:
        """Everything."""
        return {
            "findings": self.findings,
            "missing_kinds": list(self.missing_kinds),
            "counts": dict(self.counts),
            "max_growth_mib": self.max_growth_mib,
            "readings": [reading.as_json() for reading in self.readings],
        }

    def __str__(self) -> str:
        quiet = [reading for reading in self.readings if reading.is_quiet]
        lines = [f"{'minute':>7} {'front end MiB':>14} {'engine MiB':>11} {'fds':>9} {'threads':>8} {'requests':>9}"]
        lines += [
            f"{reading.at_s / 60:>7.1f} {reading.front_end.rss_bytes / MIB:>14.1f} "
            f"{reading.engine.rss_bytes / MIB:>11.1f} {reading.front_end.num_fds:>4} +{reading.engine.num_fds:>3} "
            f"{reading.front_end.num_threads:>4} +{reading.engine.num_threads:>2} {reading.num_requests:>9,}"
            for reading in quiet
        ]
        lines += ["(without clients, front end + engine)", ""]
        lines += [f"{name:<28}{count:>9,}" for name, count in sorted(self.counts.items())]
        if self.missing_kinds:
            lines.append(f"Not known to the server: {', '.join(self.missing_kinds)}")
        findings = self.findings
        lines += ["", *findings, f"{len(findings)} findings" if findings else "Nothing left behind, nothing wrong"]
        return "\n".join(lines)


def find_leaks(readings: Sequence[Reading], max_growth_mib: float) -> list[str]:
    """Growth between quiet readings, and whatever is in use when nobody asks for anything."""
    quiet = [reading for reading in readings if reading.is_quiet]
    if len(quiet) < 2:
        return ["too few quiet readings to compare: run it longer"]
    found = []
    for reading in quiet:
        for name, value in (
            ("running requests", reading.num_running),
            ("waiting requests", reading.num_waiting),
            ("share of KV blocks in use", reading.kv_share),
        ):
            if value:
                found.append(f"minute {reading.at_s / 60:.1f}: {name} without clients: {value:g}")
    first, last = quiet[0], quiet[-1]
    for role in ("front_end", "engine"):
        before, after = getattr(first, role), getattr(last, role)
        shown = role.replace("_", " ")
        for name, grown in (
            ("descriptors", after.num_fds - before.num_fds),
            ("threads", after.num_threads - before.num_threads),
        ):
            if grown > 0:
                found.append(f"{shown}: {grown} more {name} than after the warm-up")
        grown_mib = (after.rss_bytes - before.rss_bytes) / MIB
        if grown_mib > max_growth_mib:
            found.append(f"{shown}: {grown_mib:.1f} MiB more than after the warm-up; {max_growth_mib:g} are allowed")
    return found
