"""A run over time, ready to be drawn: one bar per request, tokens per second, open requests.

Owns: which requests are shown, how gaps are classed and merged, buckets.   Does not own: drawing (timeline_html.py,
timeline_png.py). Pure. What is drawn is bounded whatever the run: MAX_ROWS bars, NUM_BUCKETS points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.bench.serve.record import RequestRecord

MAX_ROWS = 250
NUM_BUCKETS = 80


class Phase(Enum):
    """What a request is doing in a segment of its bar."""

    FIRST_TOKEN = "waiting for the first token"
    FAST = "fast"
    MEDIUM = "medium"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a bar; seconds from the run's first request."""

    start_s: float
    end_s: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class Row:
    """One request's bar, and a line about it."""

    segments: list[Segment]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that is drawn."""

    duration_s: float
    rows: list[Row]
    num_requests: int
    """Finished ones; more than rows when only every n-th is shown."""
    itl_limits_s: tuple[float, float]
    times_s: list[float]
    """Middle of each bucket."""
    tokens_per_s: list[float]
    open_requests: list[float]
    """Mean over each bucket."""
    ttfts_s: list[float]
    itls_s: list[float]


def parse_itl_limits(text: str) -> tuple[float, float]:
    """ "25,50", in ms -> seconds. Raises ConfigError."""
    try:
        low, high = (float(part) / 1e3 for part in text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0 < low <= high:
        remedy = "must be two times in ms, the smaller first, such as 25,50"
        raise ConfigError([ConfigProblem("--timeline-itl-thresholds", text, remedy)])
    return low, high


def make_timeline(
    records: Sequence[RequestRecord], output_lens: Sequence[int], itl_limits_s: tuple[float, float]
) -> Timeline | None:
    """What to draw of the successful requests; None when there are none. `output_lens` are those of all records."""
    done = [(record, count) for record, count in zip(records, output_lens, strict=True) if record.is_success]
    if not done:
        return None
    done.sort(key=lambda pair: pair[0].start_s)
    first_s = done[0][0].start_s
    duration_s = max(max(record.end_s for record, _ in done) - first_s, 1e-6)
    width_s = duration_s / NUM_BUCKETS
    tokens, busy_s = np.zeros(NUM_BUCKETS), np.zeros(NUM_BUCKETS)
    edges_s = np.arange(NUM_BUCKETS) * width_s
    for record, count in done:
        start_s, end_s = record.start_s - first_s, record.end_s - first_s
        times_s = start_s + np.cumsum([record.ttft_s, *record.itls_s])
        places = np.minimum((times_s / width_s).astype(np.int64), NUM_BUCKETS - 1)
        np.add.at(tokens, places, count / len(places))
        busy_s += np.clip(np.minimum(end_s, edges_s + width_s) - np.maximum(start_s, edges_s), 0.0, None)
    step = -(-len(done) // MAX_ROWS)
    return Timeline(
        duration_s=duration_s,
        rows=[_make_row(record, count, first_s, itl_limits_s) for record, count in done[::step]],
        num_requests=len(done),
        itl_limits_s=itl_limits_s,
        times_s=(edges_s + width_s / 2).tolist(),
        tokens_per_s=(tokens / width_s).tolist(),
        open_requests=(busy_s / width_s).tolist(),
        ttfts_s=sorted(record.ttft_s for record, _ in done),
        itls_s=sorted(itl_s for record, _ in done for itl_s in record.itls_s),
    )


def _make_row(record: RequestRecord, num_output: int, first_s: float, limits_s: tuple[float, float]) -> Row:
    at_s = record.start_s - first_s
    segments = [Segment(at_s, at_s + record.ttft_s, Phase.FIRST_TOKEN)]
    at_s += record.ttft_s
    for itl_s in record.itls_s:
        phase = Phase.FAST if itl_s < limits_s[0] else Phase.MEDIUM if itl_s < limits_s[1] else Phase.SLOW
        last = segments[-1]
        if last.phase is phase:
            segments[-1] = Segment(last.start_s, at_s + itl_s, phase)
        else:
            segments.append(Segment(at_s, at_s + itl_s, phase))
        at_s += itl_s
    label = (
        f"request {record.index}: {record.num_prompt_tokens} + {num_output} tokens, TTFT {1e3 * record.ttft_s:.1f} ms, "
        f"end after {record.latency_s:.3f} s"
    )
    return Row(segments, label)
