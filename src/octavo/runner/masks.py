"""The masks of one step, filled by another thread while the forward pass runs.

Owns: the thread, the memory of a step's masks.   Does not own: what a sequence may write (constraint.py).
Invariants: between `start` and `wait` nobody else touches the constraints of that job; a mask that cannot be made is a
value (`errors`), and never fails the step. A step without constrained sequences costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from octavo.base.errors import GrammarError
from octavo.base.units import ceil_div
from octavo.kernels.ops import IntArray
from octavo.proto.failure import Failure, internal_failure
from octavo.runner.constraint import SequenceConstraint


class MaskJob:
    """The masks of one step, by the place of each row among those that sample."""

    def __init__(self, constraints: Mapping[int, SequenceConstraint], num_words: int) -> None:
        self.masks: dict[int, IntArray] = {}
        """Place -> words [ceil(V / 32)]; places that may write anything are not in it."""
        self.errors: dict[int, Failure] = {}
        """Place -> why its mask cannot be made."""
        self._constraints = constraints
        self._words = np.empty((len(constraints), num_words), np.int32)

    def fill(self) -> None:
        """Make them all. Cost: 10 to 200 us each, a few ms at worst, with the interpreter's lock free most of it."""
        for words, (place, constraint) in zip(self._words, self._constraints.items(), strict=True):
            try:
                if constraint.fill_mask(words):
                    self.masks[place] = words
            except Exception as error:
                self.errors[place] = as_failure(error)


class MaskThread:
    """Fills jobs one after the other. The thread starts with the first job and ends with this object."""

    def __init__(self, vocab_size: int) -> None:
        self._num_words = ceil_div(vocab_size, 32)
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    def start(self, constraints: Mapping[int, SequenceConstraint]) -> MaskJob:
        """Begin to make the masks of these places; `wait` before looking at them."""
        job = MaskJob(constraints, self._num_words)
        if constraints:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="octavo-masks")
            self._running = self._pool.submit(job.fill)
        return job

    def wait(self) -> None:
        """Until the last job started is done. Also after a failed step: its constraints must be at rest."""
        running, self._running = self._running, None
        if running is not None:
            running.result()


def as_failure(error: Exception) -> Failure:
    """A text that cannot go on in its grammar is the request's own; anything else is a fault of ours."""
    return Failure("request", str(error)) if isinstance(error, GrammarError) else internal_failure(error)
