"""A progress bar for offline generation: requests done, and tokens a second.

Owns: what is shown, and how often.   Does not own: what is counted (llm.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

from octavo.base.errors import ValidationError
from octavo.outputs import RequestOutput


class ProgressBar(Protocol):
    """What is needed of a bar: the part of tqdm's interface that callers may bring their own for."""

    def update(self, n: int = 1) -> object: ...

    def set_postfix_str(self, s: str) -> object: ...

    def close(self) -> None: ...


ProgressBarFactory = Callable[..., ProgressBar]
"""Called with total= and desc=, as tqdm is."""


class TerminalBar:
    """One line on stderr, redrawn a few times a second on a terminal, written once at the end elsewhere."""

    def __init__(self, total: int, desc: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        # Drawn from `update`, not from a thread of its own: that would take time from the cores that compute.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rates]}"),
            console=Console(file=sys.stderr),
            auto_refresh=False,
        )
        self._task = self._progress.add_task(desc, total=total, rates="")
        self._progress.start()
        self._drawn_s = 0.0

    def update(self, n: int = 1) -> None:
        """Count n requests as done."""
        self._progress.update(self._task, advance=n)
        now_s = time.monotonic()
        if now_s - self._drawn_s >= 0.1:
            self._progress.refresh()
            self._drawn_s = now_s

    def set_postfix_str(self, s: str) -> None:
        """Set the text at the end of the line."""
        self._progress.update(self._task, rates=s)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()


class GenerationProgress:
    """Feeds a bar from finished outputs; without a bar it does nothing. Context manager."""

    def __init__(self, bar: ProgressBar | None) -> None:
        self._bar = bar
        self._started_s = time.monotonic()
        self._num_prompt_tokens = self._num_output_tokens = 0

    @classmethod
    def start(cls, use_tqdm: bool | ProgressBarFactory, *, total: int) -> GenerationProgress:
        """A bar of our own for True, one from the caller's factory, or none. Raises ValidationError."""
        if not isinstance(use_tqdm, bool) and not callable(use_tqdm):
            raise ValidationError(
                f"use_tqdm={use_tqdm!r}: must be True, False, or a function that makes a bar, such as tqdm",
                parameter="use_tqdm",
                value=use_tqdm,
            )
        if not use_tqdm or total == 0:
            return cls(None)
        factory = TerminalBar if use_tqdm is True else use_tqdm
        return cls(factory(total=total, desc="Generating"))

    def add(self, output: RequestOutput) -> None:
        """A request has finished."""
        if self._bar is None:
            return
        self._num_prompt_tokens += len(output.prompt_token_ids)
        self._num_output_tokens += sum(len(completion.token_ids) for completion in output.outputs)
        elapsed_s = max(time.monotonic() - self._started_s, 1e-9)
        self._bar.set_postfix_str(
            f"input {self._num_prompt_tokens / elapsed_s:.1f} tokens/s, "
            f"output {self._num_output_tokens / elapsed_s:.1f} tokens/s"
        )
        self._bar.update(1)

    def __enter__(self) -> GenerationProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
