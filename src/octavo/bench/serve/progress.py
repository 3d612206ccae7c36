"""A line on the terminal that shows how far a run is.

Owns: what is shown and how often.   Does not own: the run. Drawn at most twice a second, to cost little.
"""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from octavo.bench.serve.record import RequestRecord

INTERVAL_S = 0.5


class ProgressLine:
    """Context manager; shows nothing when `is_shown` is false or the terminal is none."""

    def __init__(self, num_requests: int, *, is_shown: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("requests"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rates]}"),
            console=console,
            auto_refresh=False,
            disable=not is_shown or not console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("", total=num_requests, rates="")
        self._num_done = self._num_failed = self._num_tokens = 0
        self._start_s = self._shown_s = time.monotonic()

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        self._start_s = self._shown_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._show(time.monotonic())
        self._progress.stop()

    def on_finished(self, record: RequestRecord) -> None:
        """A request has ended."""
        self._num_done += 1
        self._num_failed += not record.is_success
        self._num_tokens += record.num_output_tokens or record.num_token_chunks
        now_s = time.monotonic()
        if now_s - self._shown_s >= INTERVAL_S:
            self._show(now_s)

    def _show(self, now_s: float) -> None:
        self._shown_s = now_s
        elapsed_s = max(now_s - self._start_s, 1e-9)
        rates = f"{self._num_done / elapsed_s:.1f} req/s  {self._num_tokens / elapsed_s:,.0f} tok/s"
        if self._num_failed:
            rates += f"  {self._num_failed} failed"
        self._progress.update(self._task, completed=self._num_done, rates=rates)
        self._progress.refresh()
