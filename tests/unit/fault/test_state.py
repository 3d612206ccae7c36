"""The engine's life is a table: nothing happens that is not in it."""

from __future__ import annotations

import pytest

from octavo.base.errors import InvariantError
from octavo.fault.state import EngineEvent, EngineState, next_state

E, S = EngineEvent, EngineState


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([E.READY], S.HEALTHY),
        ([E.DEATH], S.DEAD),
        ([E.READY, E.STALL], S.SUSPECT),
        ([E.READY, E.STALL, E.PROGRESS], S.HEALTHY),
        ([E.READY, E.STALL, E.DEATH, E.RESTART, E.READY], S.HEALTHY),
        ([E.READY, E.DEATH, E.RESTART, E.DEATH, E.RESTART], S.RECOVERING),
        ([E.READY, E.DEATH, E.GIVE_UP], S.DEAD),
        ([E.READY, E.DRAIN, E.DEATH, E.RESTART, E.READY, E.PROGRESS], S.DRAINING),
        ([E.READY, E.DRAIN, E.STOPPED], S.DEAD),
    ],
)
def test_a_life_ends_where_the_table_says(events, end):
    state = S.STARTING
    for event in events:
        state = next_state(state, event)
    assert state is end


def test_dead_stays_dead():
    assert {next_state(S.DEAD, event) for event in E} == {S.DEAD}


@pytest.mark.parametrize(
    ("state", "event"), [(S.STARTING, E.RESTART), (S.HEALTHY, E.READY), (S.FAULTED, E.DEATH), (S.FAULTED, E.PROGRESS)]
)
def test_what_cannot_happen_is_a_bug(state, event):
    with pytest.raises(InvariantError, match=f"{event.name} cannot happen in state {state.name}"):
        next_state(state, event)


def test_only_a_healthy_engine_is_ready_and_only_one_that_will_serve_takes_requests():
    assert [state for state in S if state.is_ready] == [S.HEALTHY]
    assert {state for state in S if not state.takes_requests} == {S.STARTING, S.DRAINING, S.DEAD}
