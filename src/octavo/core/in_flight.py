"""The steps that are out, in the order of their plans.

Owns: numbers of steps, the epoch, which result may come next.
Does not own: what is in a step (`planning.py`), what its result means (`scheduler.py`).
"""

from __future__ import annotations

from collections import deque

import msgspec

from octavo.base.errors import InvariantError
from octavo.core.planning import Decision
from octavo.proto.result import StepResult


class StepInFlight(msgspec.Struct, frozen=True, gc=False):
    """A plan that is out, as the scheduler remembers it."""

    step_id: int
    decisions: list[Decision]
    """Parallel to the plan's rows."""


class StepsInFlight:
    """A queue. Plans and results of an epoch before `epoch` are dead."""

    def __init__(self) -> None:
        self.epoch = 0
        self.next_step_id = 0
        self._steps: deque[StepInFlight] = deque()

    def __len__(self) -> int:
        return len(self._steps)

    def send_out(self, decisions: list[Decision]) -> int:
        """Take the next step in. Returns its id."""
        step_id = self.next_step_id
        self.next_step_id += 1
        self._steps.append(StepInFlight(step_id, decisions))
        return step_id

    def take(self, result: StepResult) -> list[Decision]:
        """The step of this result, which is out no longer. Raises InvariantError where it is not the oldest's."""
        if not self._steps or self._steps[0].step_id != result.step_id:
            raise InvariantError(f"result of step {result.step_id} out of order")
        decisions = self._steps[0].decisions
        if len(result.token_ids) != len(decisions):
            raise InvariantError(f"step {result.step_id}: {len(result.token_ids)} entries for {len(decisions)} rows")
        self._steps.popleft()
        return decisions

    def void(self) -> list[StepInFlight]:
        """A new epoch begins; all that was out is dead. Returns it, oldest first."""
        steps = list(self._steps)
        self._steps.clear()
        self.epoch += 1
        return steps

    def num_live_frames(self) -> int:
        """Shares of requests that have not ended. O(all of them)."""
        return sum(not decision.request.is_finished for step in self._steps for decision in step.decisions)
