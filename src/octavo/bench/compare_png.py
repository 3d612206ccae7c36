"""A comparison as a PNG picture, drawn by matplotlib (the extra `bench`).

Owns: the picture.   Does not own: the numbers (compare.py).
"""

from __future__ import annotations

from pathlib import Path

from octavo.bench.compare import Comparison

_COLOURS = ("#98a2b3", "#2e9e6b")


def write_comparison_png(comparison: Comparison, path: Path, *, title: str) -> None:
    """Draw and write it: two bars a workload, the first engine's as 1; rates stand on the bars."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pairs = comparison.pairs
    figure = Figure(figsize=(1.9 + 1.9 * len(pairs), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = list(range(len(pairs)))
    for side, engine in enumerate((comparison.base.engine, comparison.other.engine)):
        heights = [pair[side].tokens_per_s / pair[0].tokens_per_s for pair in pairs]
        bars = axes.bar(
            [place + 0.4 * (side - 0.5) for place in places], heights, 0.38, color=_COLOURS[side], label=engine
        )
        axes.bar_label(bars, labels=[f"{pair[side].tokens_per_s:,.0f}" for pair in pairs], fontsize="small", padding=2)
    names = [
        f"{base.name}\n{base.unit}put tokens / s\n× {other.tokens_per_s / base.tokens_per_s:.1f}"
        for base, other in pairs
    ]
    axes.set_xticks(places, names)
    axes.set_ylabel(f"speed, {comparison.base.engine} = 1")
    axes.set_title(title)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=130)
