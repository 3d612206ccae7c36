"""The first idle moment of an engine's process."""

from __future__ import annotations

import pytest

from octavo.base.errors import LoadError
from octavo.engine.process.idle import prepare_when_idle


class Core:
    """Busy for as many looks as the test says, then idle."""

    def __init__(self, *, num_busy: int = 0, error: Exception | None = None) -> None:
        self.is_prepared_for_grammars = False
        self.num_steps_done = 0
        self.num_prepared = 0
        self._num_busy = num_busy
        self._error = error

    @property
    def has_work(self) -> bool:
        self._num_busy -= 1
        return self._num_busy >= 0

    def prepare_for_grammars(self) -> None:
        self.num_prepared += 1
        if self._error is not None:
            raise self._error
        self.is_prepared_for_grammars = True


def wait(core: Core) -> None:
    thread = prepare_when_idle(core, idle_s=0.001)
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("num_busy", [0, 5])
def test_the_back_end_is_made_once_nothing_runs(num_busy: int) -> None:
    core = Core(num_busy=num_busy)
    wait(core)
    assert core.num_prepared == 1
    assert core._num_busy < 0


def test_steps_between_two_looks_are_no_idle_moment() -> None:
    class Stepping(Core):
        @property
        def has_work(self) -> bool:
            self.num_steps_done += self.num_steps_done < 5
            return False

    core = Stepping()
    wait(core)
    assert core.num_steps_done == 5


def test_nothing_is_left_to_do_where_a_request_came_first() -> None:
    core = Core(num_busy=10**9)
    core.is_prepared_for_grammars = True
    wait(core)
    assert core.num_prepared == 1  # which then finds it made


def test_a_tokenizer_that_serves_no_grammars_ends_nothing() -> None:
    wait(Core(error=LoadError("no")))
    wait(Core(error=RuntimeError("a bug")))
