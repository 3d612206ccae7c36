"""All requests that have not ended: by name, by state, by row, by deadline.

Owns: the two queues, the rows, the deadlines, and the changes of state that move a request between them.
Does not own: why a request moves (`scheduler.py`), its blocks (the KV manager).

Invariant: each request is in exactly one queue, the running one iff its state is RUNNING iff it has a row.
"""

from __future__ import annotations

from octavo.base.errors import InvariantError
from octavo.core.deadlines import DeadlineQueue
from octavo.core.queues import RequestQueue
from octavo.core.request import NO_ROW, Request
from octavo.core.rows import RowTable
from octavo.core.state import RequestStatus


class Roster:
    """The requests of a scheduler. `running` and `waiting` are in the policy's order; to be read by others."""

    def __init__(self, num_rows: int) -> None:
        self.running = RequestQueue()
        self.waiting = RequestQueue()
        self.rows = RowTable(num_rows)
        self.deadlines = DeadlineQueue()
        self._by_id: dict[str, Request] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._by_id

    def __getitem__(self, request_id: str) -> Request:
        return self._by_id[request_id]

    def add(self, request: Request) -> None:
        """Take in a new request, as a waiting one."""
        self.waiting.add(request)
        self._by_id[request.request_id] = request
        self.deadlines.add(request)

    def start(self, request: Request, num_computed: int) -> None:
        """From waiting to running: give it a row."""
        request.move_to(RequestStatus.RUNNING)
        request.row = self.rows.take()
        request.tokens_computed = num_computed
        request.num_bypassed = 0
        self.waiting.remove(request)
        self.running.add(request)

    def preempt(self, request: Request, *, drop: bool) -> None:
        """From running back to waiting, at its place in the order; its blocks are free by now."""
        self._leave_queue(request)
        request.move_to(RequestStatus.PREEMPTED)
        request.roll_back(drop=drop)
        self.waiting.add(request)

    def end(self, request: Request, status: RequestStatus) -> None:
        """Let go of a request, whatever its state; frames in flight are ignored from here on."""
        self._leave_queue(request)
        request.move_to(status)
        request.frames.clear()
        del self._by_id[request.request_id]

    def _leave_queue(self, request: Request) -> None:
        if request.status is RequestStatus.RUNNING:
            self.running.remove(request)
            self.rows.give_back(request.row)
            request.row = NO_ROW
        else:
            self.waiting.remove(request)

    def check_integrity(self) -> None:
        """Raise InvariantError where names, queues, rows and states disagree. O(requests)."""
        self.rows.check_integrity([request.row for request in self.running])
        if len(self.running) + len(self.waiting) != len(self._by_id):
            raise InvariantError("some request is in no queue or in two")
        for request in self._by_id.values():
            request.check_integrity()
            is_running = request.status is RequestStatus.RUNNING
            if request not in (self.running if is_running else self.waiting):
                raise InvariantError(f"{request.request_id}: {request.status.name} but not in that queue")
            if not is_running and request.seq.block_ids:
                raise InvariantError(f"{request.request_id}: {request.status.name} and holds blocks")

    @property
    def num_frames(self) -> int:
        """Frames in flight of all requests."""
        return sum(len(request.frames) for request in self._by_id.values())
