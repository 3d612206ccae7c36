"""Row numbers: the runner's persistent slots, handed out by the scheduler (docs/decisions/0001).

Owns: which rows are free, and which the runner has not been told about yet.
Invariant: a row is free or held, never both; a row given back is named in the next plan's `freed_rows`. It may be
handed out again in that very plan, since the runner forgets rows first.
"""

from __future__ import annotations

from octavo.base.errors import InvariantError


class RowTable:
    """Rows 0 .. num_rows - 1. The one given back last is taken first."""

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._free = list(range(num_rows - 1, -1, -1))
        self._untold: list[int] = []

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """A free row. Raises InvariantError when there is none."""
        if not self._free:
            raise InvariantError(f"all {self._num_rows} rows are taken")
        return self._free.pop()

    def give_back(self, row: int) -> None:
        self._free.append(row)
        self._untold.append(row)

    def take_freed(self) -> list[int]:
        """Rows given back since the last plan; the caller's plan names them."""
        freed = self._untold
        self._untold = []
        return freed

    def tell_all_again(self) -> None:
        """A plan was lost: name every free row in the next one, whether or not it was named before."""
        self._untold = sorted(self._free)

    def check_integrity(self, held: list[int]) -> None:
        """Raise InvariantError unless free and held rows are a partition of all rows."""
        if sorted(self._free + held) != list(range(self._num_rows)):
            raise InvariantError(f"rows: free {sorted(self._free)} and held {sorted(held)} of {self._num_rows}")
