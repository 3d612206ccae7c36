"""Draw docs/figures/comparison.svg from comparison.json beside it: the speed of engines on the same work.

The JSON holds {"machine": text, "engines": {name: {workload: median seconds}}}; docs/figures/README.md says how to
make it.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
TITLES = {
    "single_128_128": "one request, 128 in / 128 out",
    "single_1024_64": "one request, 1,024 in / 64 out",
    "batch_64x256_128": "64 requests, 256 in / 128 out",
    "prefill_16x1024": "16 prompts of 1,024, 1 out",
}
COLORS = ("#2563a8", "#b8b8b8")
WIDTH, LABEL_WIDTH, BAR_HEIGHT, GAP = 760, 240, 16, 16


def draw(machine: str, engines: dict[str, dict[str, float]]) -> str:
    """The figure as SVG: bars are speed (1 / seconds) against the fastest of each workload."""
    rows = []
    y = 34
    room = WIDTH - LABEL_WIDTH - 120
    for workload, title in TITLES.items():
        fastest = min(times[workload] for times in engines.values())
        rows.append(f'<text x="{LABEL_WIDTH - 10}" y="{y + BAR_HEIGHT + 4}" text-anchor="end">{escape(title)}</text>')
        for color, times in zip(COLORS, engines.values(), strict=True):
            seconds = times[workload]
            length = room * fastest / seconds
            rows.append(f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT}" fill="{color}"/>')
            rows.append(f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{y + 12}">{seconds:.2f} s</text>')
            y += BAR_HEIGHT
        y += GAP
    legend = []
    x = LABEL_WIDTH
    for color, name in zip(COLORS, engines, strict=True):
        legend.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{color}"/>')
        legend.append(f'<text x="{x + 18}" y="20">{escape(name)}</text>')
        x += 150
    note = f'<text x="{LABEL_WIDTH}" y="{y + 6}" fill="#666">{escape(machine)}</text>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 16}" font-family="sans-serif" '
            'font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            *legend,
            *rows,
            note,
            "</svg>",
            "",
        ]
    )


def main() -> int:
    data = json.loads((FIGURES / "comparison.json").read_text(encoding="utf-8"))
    (FIGURES / "comparison.svg").write_text(draw(data["machine"], data["engines"]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
