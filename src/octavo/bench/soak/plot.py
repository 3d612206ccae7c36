"""A soak as a PNG picture, drawn by matplotlib (the extra `bench`).

Owns: the picture.   Does not own: readings (watch.py).
"""

from __future__ import annotations

from pathlib import Path

from octavo.bench.soak.verdict import SoakResult
from octavo.bench.soak.watch import MIB

HEADROOM = 1.25


def write_soak_png(result: SoakResult, path: Path, *, title: str) -> None:
    """Draw and write it: memory, descriptors and threads, requests and blocks; quiet readings as dots."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 10), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    memory, engine_memory, handles, live = figure.subplots(4, 1, sharex=True)
    readings = result.readings
    panels = (
        (memory, "front end, MiB", [("memory", [r.front_end.rss_bytes / MIB for r in readings])]),
        (engine_memory, "engine, MiB", [("memory", [r.engine.rss_bytes / MIB for r in readings])]),
        (
            handles,
            "number",
            [
                ("descriptors, front end", [r.front_end.num_fds for r in readings]),
                ("descriptors, engine", [r.engine.num_fds for r in readings]),
                ("threads, all", [r.front_end.num_threads + r.engine.num_threads for r in readings]),
            ],
        ),
        (
            live,
            "number, %",
            [
                ("running requests", [r.num_running for r in readings]),
                ("waiting requests", [r.num_waiting for r in readings]),
                ("KV blocks in use, %", [100 * r.kv_share for r in readings]),
            ],
        ),
    )
    minutes = [reading.at_s / 60 for reading in readings]
    quiet = [index for index, reading in enumerate(readings) if reading.is_quiet]
    for axes, y_label, series in panels:
        for label, values in series:
            (line,) = axes.plot(minutes, values, label=label, linewidth=1.2)
            axes.plot([minutes[i] for i in quiet], [values[i] for i in quiet], "o", color=line.get_color())
        axes.set_ylabel(y_label)
        top = max(max(values, default=0.0) for _, values in series)
        axes.set_ylim(0, HEADROOM * top or 1)
        axes.grid(alpha=0.3)
        if len(series) > 1:
            axes.legend(loc="upper right", ncols=3, fontsize="small")
    live.set_xlabel("minutes; dots: no client is under way")
    figure.savefig(path, dpi=110)
