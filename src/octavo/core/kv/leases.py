"""Leases: blocks that something outside the executor's order still reads or writes.

A copy, a tier or a peer takes a lease before it starts and ends it when it is done; the executor's own steps need none,
since they run in order. Owns: the open leases. Does not own: reference counts; a block with both is free when both end.

Invariants: a freed block comes back only when its last lease ends. A lease past its deadline is quarantined, not ended:
the transfer may still be touching the memory, so the blocks stay out until its owner confirms (`release`) or a newer
epoch shows that the owner is gone (`fence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from octavo.base.errors import InvariantError


class Lease:
    """A claim on blocks, until `deadline_s` on the engine's clock. Compared by identity."""

    __slots__ = ("block_ids", "deadline_s", "epoch", "is_quarantined")

    def __init__(self, block_ids: tuple[int, ...], *, epoch: int, deadline_s: float) -> None:
        self.block_ids = block_ids
        self.epoch = epoch
        self.deadline_s = deadline_s
        self.is_quarantined = False

    def __repr__(self) -> str:
        state = ", quarantined" if self.is_quarantined else ""
        return f"Lease(block_ids={self.block_ids}, epoch={self.epoch}, deadline_s={self.deadline_s}{state})"


class LeaseTable:
    """The open leases, oldest first."""

    def __init__(self) -> None:
        self._open: dict[Lease, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._open)

    def open(self, block_ids: Iterable[int], *, epoch: int, deadline_s: float) -> Lease:
        """A new lease."""
        lease = Lease(tuple(block_ids), epoch=epoch, deadline_s=deadline_s)
        self._open[lease] = None
        return lease

    def close(self, lease: Lease) -> None:
        """Take the lease off the table. Raises InvariantError if it is not on it."""
        if lease not in self._open:
            raise InvariantError(f"{lease} is not open")
        del self._open[lease]

    def quarantine_expired(self, now_s: float) -> tuple[Lease, ...]:
        """Mark the leases whose deadline has passed; returns those newly marked. O(open leases)."""
        expired = tuple(lease for lease in self._open if lease.deadline_s <= now_s and not lease.is_quarantined)
        for lease in expired:
            lease.is_quarantined = True
        return expired

    def older_than(self, epoch: int) -> tuple[Lease, ...]:
        """The leases of earlier epochs."""
        return tuple(lease for lease in self._open if lease.epoch < epoch)
