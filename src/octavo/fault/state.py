"""States of an engine as those who use it see them, and which event leads where.

Pure. Owns: the table.   Does not own: noticing events (supervisor, watchdog), acting on them.

    STARTING --ready--> HEALTHY <--progress-- SUSPECT
                        HEALTHY --stall-----> SUSPECT
                        HEALTHY, SUSPECT --death--> FAULTED --restart--> RECOVERING --ready--> HEALTHY
    any --drain--> DRAINING (whatever the engine's process does then)
    any --give up, stopped--> DEAD
"""

from __future__ import annotations

from enum import Enum, auto

from octavo.base.errors import InvariantError


class EngineState(Enum):
    """Where an engine is in its life."""

    STARTING = "starting"
    """Loading for the first time; takes no requests."""
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    """It has work and shows no progress; it will be killed unless some comes."""
    FAULTED = "faulted"
    """It has died; a restart is due."""
    RECOVERING = "recovering"
    """A successor is loading; requests wait for it."""
    DRAINING = "draining"
    """It finishes what it has and takes nothing new."""
    DEAD = "dead"
    """It will not come back."""

    @property
    def is_ready(self) -> bool:
        """True: requests are served now."""
        return self is EngineState.HEALTHY

    @property
    def takes_requests(self) -> bool:
        """True: a request handed over now will be served, at once or after the recovery."""
        return self in (EngineState.HEALTHY, EngineState.SUSPECT, EngineState.FAULTED, EngineState.RECOVERING)


class EngineEvent(Enum):
    """What can happen to an engine."""

    READY = auto()
    STALL = auto()
    PROGRESS = auto()
    DEATH = auto()
    RESTART = auto()
    GIVE_UP = auto()
    DRAIN = auto()
    STOPPED = auto()


_S, _E = EngineState, EngineEvent
_TRANSITIONS: dict[tuple[EngineState, EngineEvent], EngineState] = {
    (_S.STARTING, _E.READY): _S.HEALTHY,
    (_S.STARTING, _E.DEATH): _S.DEAD,
    (_S.HEALTHY, _E.STALL): _S.SUSPECT,
    (_S.HEALTHY, _E.PROGRESS): _S.HEALTHY,
    (_S.SUSPECT, _E.STALL): _S.SUSPECT,
    (_S.SUSPECT, _E.PROGRESS): _S.HEALTHY,
    (_S.HEALTHY, _E.DEATH): _S.FAULTED,
    (_S.SUSPECT, _E.DEATH): _S.FAULTED,
    (_S.FAULTED, _E.RESTART): _S.RECOVERING,
    (_S.RECOVERING, _E.READY): _S.HEALTHY,
    (_S.RECOVERING, _E.DEATH): _S.FAULTED,
    (_S.DRAINING, _E.PROGRESS): _S.DRAINING,
    (_S.DRAINING, _E.STALL): _S.DRAINING,
    (_S.DRAINING, _E.READY): _S.DRAINING,
    (_S.DRAINING, _E.DEATH): _S.DRAINING,
    (_S.DRAINING, _E.RESTART): _S.DRAINING,
}
_ANY_TIME: dict[EngineEvent, EngineState] = {_E.DRAIN: _S.DRAINING, _E.GIVE_UP: _S.DEAD, _E.STOPPED: _S.DEAD}
"""What the owner may decide in every state but DEAD."""


def next_state(state: EngineState, event: EngineEvent) -> EngineState:
    """Where `event` leads from `state`. DEAD stays dead. Raises InvariantError for what cannot happen."""
    if state is EngineState.DEAD:
        return state
    target = _ANY_TIME.get(event) or _TRANSITIONS.get((state, event))
    if target is None:
        raise InvariantError(f"engine event {event.name} cannot happen in state {state.name}")
    return target
