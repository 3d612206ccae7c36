"""One request as the scheduler sees it: a sequence of tokens of which some are computed, and its frames in flight.

Owns: the tokens known, how far they are computed, the frames, the state, the row number.
Does not own: blocks (the manager fills `seq`), the queues, what is decided.

Invariants
- `tokens_computed` counts positions whose step has returned in the present epoch; it is below `num_tokens`.
- Frames are in plan order. Frames of the present epoch are contiguous and start at `tokens_computed`.
- Whatever concerns steps in flight is derived from the frames; there is no counter to fall out of step.
- A frame older than `epoch` belongs to a roll-back: from `first_valid_epoch` on its samples still count, before it
  they are dropped. While a frame that counts is older than `epoch`, the request is not scheduled again.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from octavo.base.errors import InvariantError
from octavo.core.kv.sequence import KvSequence
from octavo.core.state import RequestStatus, check_transition
from octavo.proto.request import NewRequest

Task = Literal["generate"]
NO_ROW = -1


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A request's share of one step in flight."""

    step_id: int
    epoch: int
    """The request's, when the step was planned."""
    start: int
    num_tokens: int
    num_drafts: int
    """The last so many of them are guesses."""
    samples: bool
    """The last position yields a token."""

    @property
    def end(self) -> int:
        """The first position behind this frame."""
        return self.start + self.num_tokens


class Request:
    """State of one request from `Scheduler.add` to its end. Changed by the scheduler and `finish.py` only."""

    __slots__ = (
        "client",
        "epoch",
        "first_valid_epoch",
        "frames",
        "is_announced",
        "max_total_tokens",
        "num_bypassed",
        "num_cached_tokens",
        "num_failed_steps",
        "num_prompt_logprobs",
        "num_prompt_tokens",
        "order_key",
        "ordinal",
        "request_id",
        "row",
        "scheduled_s",
        "seq",
        "status",
        "stop_ids",
        "task",
        "token_ids",
        "tokens_computed",
    )

    def __init__(self, client: NewRequest, ordinal: int, seq: KvSequence, *, max_model_len: int) -> None:
        self.client = client
        self.request_id = client.request_id
        self.task: Task = "generate"
        self.ordinal = ordinal
        """Place in the order of arrival at this scheduler."""
        self.order_key: tuple[float, ...] = ()
        """Place in the policy's order; set once, by the scheduler."""
        self.seq = seq
        self.status = RequestStatus.WAITING
        self.row = NO_ROW
        self.token_ids = [*client.prompt_token_ids, *client.output_token_ids]
        """All tokens known: prompt, then output accepted so far."""
        self.num_prompt_tokens = len(client.prompt_token_ids)
        self.max_total_tokens = min(self.num_prompt_tokens + client.max_tokens, max_model_len)
        """At this length the text ends, whatever it says."""
        self.stop_ids = frozenset(client.eos_token_ids).union(client.sampling.stop_token_ids or ())
        self.tokens_computed = 0
        self.epoch = 0
        self.first_valid_epoch = 0
        self.frames: deque[Frame] = deque()
        self.num_cached_tokens: int | None = None
        """Prompt tokens found in the prefix cache at first admission; None before it."""
        self.num_prompt_logprobs = 0
        """Prompt positions whose logprobs were handed on: 1 .. so many."""
        self.scheduled_s: float | None = None
        """When it was first scheduled."""
        self.is_announced = False
        """Its first delta is out."""
        self.num_bypassed = 0
        """Requests admitted past this one since it last ran."""
        self.num_failed_steps = 0
        """Steps in a row that failed with this request among them."""

    @property
    def num_tokens(self) -> int:
        """Tokens known."""
        return len(self.token_ids)

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    def span(self) -> tuple[int, int]:
        """(positions scheduled, tokens certain to exist) once everything in flight has returned.

        The one subtraction of scheduling: what lies between the two is still to be computed.
        """
        scheduled = self.tokens_computed
        certain = len(self.token_ids)
        for frame in self.frames:
            if frame.epoch >= self.first_valid_epoch:
                end = frame.start + frame.num_tokens
                if frame.samples and end >= certain:
                    certain = end + 1
                if frame.epoch == self.epoch:
                    scheduled = end
        return scheduled, certain

    @property
    def is_draining(self) -> bool:
        """Samples of an earlier epoch are still to come; scheduling now would sample their positions twice."""
        return any(self.first_valid_epoch <= frame.epoch < self.epoch for frame in self.frames)

    @property
    def is_finished(self) -> bool:
        return self.status >= RequestStatus.FINISHED_STOPPED

    @property
    def may_read_prefix_cache(self) -> bool:
        """False where the request said so or wants prompt logprobs: those exist only where we compute."""
        return self.client.sampling.reads_prefix_cache

    def move_to(self, status: RequestStatus) -> None:
        """Change the state. Raises InvariantError where the table does not allow it."""
        check_transition(self.status, status)
        self.status = status

    def roll_back(self, *, drop: bool) -> None:
        """Forget what was computed. Samples in flight are delivered when they come, or with `drop` made again."""
        self.epoch += 1
        self.tokens_computed = 0
        if drop:
            self.first_valid_epoch = self.epoch

    def check_integrity(self) -> None:
        """Raise InvariantError where the module's invariants do not hold."""
        end = self.tokens_computed
        last_epoch = 0
        for frame in self.frames:
            if frame.epoch < last_epoch or frame.epoch > self.epoch:
                raise InvariantError(f"{self.request_id}: frames out of order")
            last_epoch = frame.epoch
            if frame.epoch == self.epoch:
                if frame.start != end:
                    raise InvariantError(f"{self.request_id}: a frame starts at {frame.start}, expected {end}")
                end = frame.end
        if end > self.span()[1]:
            raise InvariantError(f"{self.request_id}: computed {end} positions, more than it can know")
        if (self.row != NO_ROW) != (self.status is RequestStatus.RUNNING):
            raise InvariantError(f"{self.request_id}: {self.status.name} with row {self.row}")
