"""The timeline of a run as a PNG picture, drawn by matplotlib (the extra `bench`).

Owns: the picture.   Does not own: what is drawn (timeline.py).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from octavo.bench.serve.timeline import Phase, Timeline

_COLOURS = {Phase.FIRST_TOKEN: "#98a2b3", Phase.FAST: "#2e9e6b", Phase.MEDIUM: "#e0a12b", Phase.SLOW: "#d1483d"}


def has_matplotlib() -> bool:
    """Whether pictures can be drawn; imports nothing."""
    return importlib.util.find_spec("matplotlib") is not None


def write_timeline_png(timeline: Timeline, path: Path, *, title: str) -> None:
    """Draw and write the picture: bars of requests, tokens per second, open requests."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    FigureCanvasAgg(figure)
    bars, tokens, requests = figure.subplots(3, 1, sharex=True, height_ratios=(4, 1.4, 1.4))
    figure.suptitle(title)
    _draw_bars(bars, timeline)
    tokens.fill_between(timeline.times_s, timeline.tokens_per_s, color="#2f6fde", alpha=0.3)
    tokens.plot(timeline.times_s, timeline.tokens_per_s, color="#2f6fde")
    tokens.set_ylabel("output tokens / s")
    requests.fill_between(timeline.times_s, timeline.open_requests, color="#7a5bd0", alpha=0.3)
    requests.plot(timeline.times_s, timeline.open_requests, color="#7a5bd0")
    requests.set_ylabel("open requests")
    requests.set_xlabel("seconds from the first request")
    for axes in (tokens, requests):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _draw_bars(axes: Any, timeline: Timeline) -> None:
    from matplotlib.patches import Patch

    low_ms, high_ms = (1e3 * limit_s for limit_s in timeline.itl_limits_s)
    labels = {
        Phase.FIRST_TOKEN: "first token pending",
        Phase.FAST: f"ITL below {low_ms:g} ms",
        Phase.MEDIUM: f"below {high_ms:g} ms",
        Phase.SLOW: "above",
    }
    for phase in labels:
        tops, lefts, widths = [], [], []
        for index, row in enumerate(timeline.rows):
            for segment in row.segments:
                if segment.phase is phase:
                    tops.append(index)
                    lefts.append(segment.start_s)
                    widths.append(segment.end_s - segment.start_s)
        axes.barh(tops, widths, left=lefts, height=0.8, color=_COLOURS[phase])
    axes.invert_yaxis()
    axes.set_ylabel(f"requests ({len(timeline.rows)} of {timeline.num_requests})")
    keys = [Patch(color=_COLOURS[phase], label=label) for phase, label in labels.items()]
    axes.legend(handles=keys, loc="upper right", ncols=4, fontsize="small")
