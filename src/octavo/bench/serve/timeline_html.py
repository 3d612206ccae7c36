"""The timeline of a run as one HTML page that needs nothing else: no library, no network.

Owns: the page.   Does not own: what is drawn (timeline.py), marks (svg_chart.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from octavo.bench.serve.svg_chart import MARGIN_BOTTOM, MARGIN_TOP, Chart
from octavo.bench.serve.timeline import Phase, Timeline

_CSS = {Phase.FIRST_TOKEN: "first", Phase.FAST: "fast", Phase.MEDIUM: "medium", Phase.SLOW: "slow"}
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --grid: #e4e7ec; --page: #ffffff;
  --first: #98a2b3; --fast: #2e9e6b; --medium: #e0a12b; --slow: #d1483d; --tokens: #2f6fde; --open: #7a5bd0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --grid: #2b3342; --page: #12161d;
  --first: #667085; --tokens: #6ea2ff; --open: #a78bfa; } }
body { margin: 32px auto; max-width: 1000px; padding: 0 20px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 28px 0 4px; }
p { margin: 0; color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 12px; margin: 20px 0; }
dt { color: var(--soft); font-size: 13px; } dd { margin: 0; font-size: 20px; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--grid); } .first { fill: var(--first); } .fast { fill: var(--fast); }
.medium { fill: var(--medium); } .slow { fill: var(--slow); } g:hover rect { opacity: 0.7; }
.tokens-line { fill: none; stroke: var(--tokens); stroke-width: 1.6; }
.tokens-area { fill: var(--tokens); opacity: 0.14; }
.open-line { fill: none; stroke: var(--open); stroke-width: 1.6; } .open-area { fill: var(--open); opacity: 0.14; }
.ttft-line { fill: none; stroke: var(--tokens); stroke-width: 2; }
.itl-line { fill: none; stroke: var(--fast); stroke-width: 2; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin: 0 5px 0 14px;
  background: var(--k); }
""".strip()


def render_timeline(timeline: Timeline, *, title: str, facts: Mapping[str, str]) -> str:
    """The page. `facts` are shown as name and value at its top."""
    low_ms, high_ms = (1e3 * limit_s for limit_s in timeline.itl_limits_s)
    keys = [
        ("first", "first token pending"),
        ("fast", f"ITL below {low_ms:g} ms"),
        ("medium", f"below {high_ms:g} ms"),
        ("slow", "above"),
    ]
    legend = "".join(f'<span class="key" style="--k: var(--{css})"></span>{escape(text)}' for css, text in keys)
    tiles = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    shown = len(timeline.rows)
    which = "" if shown == timeline.num_requests else f" ({shown} of {timeline.num_requests} shown)"
    sections = [
        (f"Requests{which}", f"<p>{legend}</p>" + _requests_chart(timeline)),
        ("Output tokens per second", _series_chart(timeline, timeline.tokens_per_s, "tokens", "tokens / s")),
        ("Open requests", _series_chart(timeline, timeline.open_requests, "open", "requests")),
        ("Time to first token, all requests", _quantile_chart(timeline.ttfts_s, "ttft")),
        ("Inter-token latency, all gaps", _quantile_chart(timeline.itls_s, "itl")),
    ]
    body = "".join(f"<section><h2>{escape(name)}</h2>{content}</section>" for name, content in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1><p>Serving benchmark, seconds from the first request</p>"
        f"<dl>{tiles}</dl>{body}</body></html>\n"
    )


def _requests_chart(timeline: Timeline) -> str:
    pitch = min(14.0, max(2.5, 520 / len(timeline.rows)))
    height = int(MARGIN_TOP + pitch * len(timeline.rows) + MARGIN_BOTTOM)
    chart = Chart(height, x_high=timeline.duration_s, y_high=1.0, x_title="s")
    for index, row in enumerate(timeline.rows):
        pieces = [(segment.start_s, segment.end_s, _CSS[segment.phase]) for segment in row.segments]
        chart.add_bar(pieces, y=index * pitch, thickness=pitch * 0.8, label=row.label)
    return chart.render()


def _series_chart(timeline: Timeline, values: list[float], css: str, unit: str) -> str:
    chart = Chart(190, x_high=timeline.duration_s, y_high=max(values), x_title="s", y_title=unit)
    chart.add_area(timeline.times_s, values, css)
    return chart.render()


def _quantile_chart(values_s: list[float], css: str) -> str:
    """Sorted values against the share of values below them."""
    if not values_s:
        return "<p>none measured</p>"
    last = len(values_s) - 1
    percents = [percent / 2 for percent in range(201)]
    values_ms = [1e3 * values_s[round(last * percent / 100)] for percent in percents]
    chart = Chart(190, x_high=100.0, y_high=values_ms[-1], x_title="percentile", y_title="ms")
    chart.add_line(percents, values_ms, css)
    return chart.render()
