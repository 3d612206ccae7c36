"""Where a run's result goes: file names, metadata, JSON, plots.

Owns: names and contents of files.   Does not own: the result (report.py), what the plots show (timeline*.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from octavo.base.errors import ConfigError, ConfigProblem, OctavoError
from octavo.bench.serve.arrivals import ArrivalOptions
from octavo.bench.serve.report import DETAIL_KEYS, ServeReport
from octavo.bench.serve.timeline import make_timeline
from octavo.bench.serve.timeline_html import render_timeline
from octavo.bench.serve.timeline_png import has_matplotlib, write_timeline_png


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabel:
    """What a run is called in files."""

    backend: str
    label: str | None
    model: str
    tokenizer: str
    num_prompts: int
    arrivals: ArrivalOptions
    max_concurrency: int | None
    started: datetime
    metadata: Mapping[str, str]

    @property
    def time_text(self) -> str:
        return f"{self.started:%Y%m%d-%H%M%S}"

    def file_name(self) -> str:
        """vLLM's name for results."""
        ramp = self.arrivals.ramp
        if ramp is None:
            rate = f"{self.arrivals.request_rate}qps"
        else:
            rate = f"ramp-up-{ramp.strategy}-{ramp.start_rps:g}qps-{ramp.end_rps:g}qps"
        limit = "" if self.max_concurrency is None else f"-concurrency{self.max_concurrency}"
        return f"{self.label or self.backend}-{rate}{limit}-{self.model.rpartition('/')[2]}-{self.time_text}.json"

    def as_json(self) -> dict[str, object]:
        """The keys that come before the result's."""
        rate = self.arrivals.request_rate
        found: dict[str, object] = {
            "date": self.time_text,
            "endpoint_type": self.backend,
            "backend": self.backend,
            "label": self.label,
            "model_id": self.model,
            "tokenizer_id": self.tokenizer,
            "num_prompts": self.num_prompts,
            **self.metadata,
            "request_rate": "inf" if rate == float("inf") else rate,
            "burstiness": self.arrivals.burstiness,
            "max_concurrency": self.max_concurrency,
        }
        ramp = self.arrivals.ramp
        if ramp is not None:
            found |= {
                "ramp_up_strategy": ramp.strategy,
                "ramp_up_start_rps": ramp.start_rps,
                "ramp_up_end_rps": ramp.end_rps,
            }
        return found


def parse_pairs(flag: str, pairs: Sequence[str]) -> dict[str, str]:
    """["a=b", ...] -> {"a": "b"}. Raises ConfigError."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError([ConfigProblem(flag, pair, "must be KEY=VALUE")])
        found[name.strip()] = value.strip()
    return found


def choose_path(label: RunLabel, directory: str | None, file_name: str | None) -> Path:
    """Where the result goes; the folder is made. Raises OctavoError."""
    path = Path(directory or ".") / (file_name or label.file_name())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OctavoError(f"--result-dir {directory}: {error.strerror or error}") from error
    return path


def write_result(path: Path, label: RunLabel, report: ServeReport, *, is_detailed: bool, appends: bool) -> None:
    """Write the result as one JSON object, or add it as a line of its own. Raises OctavoError."""
    result = label.as_json() | report.as_json()
    if not is_detailed:
        for key in DETAIL_KEYS:
            del result[key]
    try:
        with path.open("a" if appends else "w", encoding="utf-8") as file:
            if appends and file.tell():
                file.write("\n")
            json.dump(result, file)
    except OSError as error:
        raise OctavoError(f"{path}: the result cannot be written: {error.strerror or error}") from error


def write_plots(path: Path, label: RunLabel, report: ServeReport, itl_limits_s: tuple[float, float]) -> list[str]:
    """Write PATH.timeline.html and PATH.timeline.png; what to tell the user, a line each. Raises OctavoError."""
    timeline = make_timeline(report.records, report.metrics.output_lens, itl_limits_s)
    if timeline is None:
        return ["No timeline: no request succeeded"]
    metrics = report.metrics
    facts = {
        "Requests": f"{metrics.num_completed:,}",
        "Failed": f"{metrics.num_failed:,}",
        "Duration": f"{metrics.duration_s:.2f} s",
        "Requests / s": f"{metrics.per_s(metrics.num_completed):.2f}",
        "Output tokens / s": f"{metrics.per_s(metrics.num_output_tokens):,.1f}",
        "Median TTFT": f"{metrics.distributions['ttft'].median_ms:.1f} ms",
        "Median ITL": f"{metrics.distributions['itl'].median_ms:.2f} ms",
        "p99 ITL": f"{metrics.distributions['itl'].percentile_ms(99):.2f} ms",
    }
    title = f"{label.model}, {label.label or label.backend}, {label.started:%Y-%m-%d %H:%M}"
    page, picture = path.with_suffix(".timeline.html"), path.with_suffix(".timeline.png")
    try:
        page.write_text(render_timeline(timeline, title=title, facts=facts), encoding="utf-8")
        told = [f"Timeline: {page}"]
        if has_matplotlib():
            write_timeline_png(timeline, picture, title=title)
            told.append(f"Timeline: {picture}")
        else:
            told.append("No PNG of the timeline: it needs matplotlib, pip install 'octavo[bench]'")
    except OSError as error:
        raise OctavoError(f"{page}: the timeline cannot be written: {error.strerror or error}") from error
    return told
