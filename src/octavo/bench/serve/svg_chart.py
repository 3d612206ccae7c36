"""Small charts as SVG text, without any library: axes with round ticks, lines, bars.

Owns: scales and marks.   Does not own: colours and fonts (CSS classes of the page), what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 960, 64, 16, 12, 36


def round_ticks(high: float, num_wanted: int = 6) -> list[float]:
    """Ticks from 0 to just above or at `high`, at steps of 1, 2 or 5 times a power of ten."""
    if high <= 0:
        return [0.0, 1.0]
    rough = high / num_wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [step * index for index in range(math.ceil(high / step - 1e-9) + 1)]


class Chart:
    """One chart with both axes from 0. Values are in data units; `render` gives the SVG element."""

    def __init__(self, height: int, *, x_high: float, y_high: float, x_title: str, y_title: str = "") -> None:
        self._height = height
        self._x_ticks = round_ticks(x_high, 10)
        self._y_ticks = round_ticks(y_high, 5) if y_title else []
        self._x_high = x_high
        self._y_high = self._y_ticks[-1] if y_title else y_high
        self._titles = (x_title, y_title)
        self._marks: list[str] = []

    def add_area(self, xs: Sequence[float], ys: Sequence[float], css: str) -> None:
        """A line and what lies below it, in classes `css`-line and `css`-area."""
        points = [f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in zip(xs, ys, strict=True)]
        if not points:
            return
        base = self._y(0.0)
        closed = [f"{self._x(xs[0]):.1f},{base:.1f}", *points, f"{self._x(xs[-1]):.1f},{base:.1f}"]
        self._marks.append(f'<polygon class="{css}-area" points="{" ".join(closed)}"/>')
        self._marks.append(f'<polyline class="{css}-line" points="{" ".join(points)}"/>')

    def add_line(self, xs: Sequence[float], ys: Sequence[float], css: str) -> None:
        """A line in class `css`-line."""
        points = [f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in zip(xs, ys, strict=True)]
        self._marks.append(f'<polyline class="{css}-line" points="{" ".join(points)}"/>')

    def add_bar(self, pieces: Sequence[tuple[float, float, str]], *, y: float, thickness: float, label: str) -> None:
        """Pieces (from x, to x, class) of one horizontal bar, which has its top at y (from the top); with a tooltip."""
        top, height = MARGIN_TOP + y, max(thickness, 0.4)
        drawn = "".join(
            f'<rect class="{css}" x="{self._x(start):.1f}" y="{top:.1f}" '
            f'width="{max(self._x(end) - self._x(start), 0.3):.1f}" height="{height:.1f}"/>'
            for start, end, css in pieces
        )
        self._marks.append(f"<g><title>{escape(label)}</title>{drawn}</g>")

    def render(self) -> str:
        """The chart as an <svg> element."""
        bottom, right = self._height - MARGIN_BOTTOM, WIDTH - MARGIN_RIGHT
        parts = [f'<svg viewBox="0 0 {WIDTH} {self._height}" role="img">']
        for tick in self._x_ticks:
            if tick > self._x_high * (1 + 1e-9):
                continue
            x = self._x(tick)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{MARGIN_TOP}" y2="{bottom}"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{tick:g}</text>')
        for tick in self._y_ticks:
            y = self._y(tick)
            parts.append(f'<line class="grid" x1="{MARGIN_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{MARGIN_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        parts += self._marks
        x_title, y_title = map(escape, self._titles)
        middle = (MARGIN_TOP + bottom) / 2
        parts.append(f'<text x="{right}" y="{self._height - 6}" text-anchor="end">{x_title}</text>')
        parts.append(f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">{y_title}</text>')
        return "".join([*parts, "</svg>"])

    def _x(self, value: float) -> float:
        return MARGIN_LEFT + (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) * value / (self._x_high or 1.0)

    def _y(self, value: float) -> float:
        bottom = self._height - MARGIN_BOTTOM
        return bottom - (bottom - MARGIN_TOP) * value / (self._y_high or 1.0)
