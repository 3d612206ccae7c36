"""The pool: which blocks are in use, which can be given out, and in what order.

Owns: reference counts, hold counts (leases), the free list.
Does not own: what the blocks store (`prefix.py`), who holds them (`sequence.py`, `leases.py`).

Invariants: block 0 is the null block, outside of everything here. A block is in the free list if and only if it has
neither references nor holds. The front of the list is given out first: blocks without content are put in front, blocks
with cached content at the back, so that the list is in order of last use. Every operation is O(1).
"""

from __future__ import annotations

from collections.abc import Iterator

from octavo.base.errors import ConfigError, ConfigProblem

_NONE = -1


class BlockPool:
    """Blocks 1 .. num_blocks - 1 with their counts, and a doubly linked free list threaded through two arrays.

    Block 0, which is never free, is the list's sentinel: its links point to the ends.
    """

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 2:
            remedy = "the null block and at least one other are needed"
            raise ConfigError([ConfigProblem("num_blocks", num_blocks, remedy)])
        self.num_blocks = num_blocks
        self.num_free = num_blocks - 1
        self.num_references = [0] * num_blocks
        """By block: how many sequences hold it."""
        self.num_holds = [0] * num_blocks
        """By block: how many leases hold it."""
        self._next = [*range(1, num_blocks), 0]
        self._previous = [num_blocks - 1, *range(num_blocks - 1)]

    def is_idle(self, block: int) -> bool:
        """Whether the block is in the free list."""
        return self._next[block] != _NONE and block != 0

    def free_blocks(self) -> Iterator[int]:
        """The free list from its front; must not be changed meanwhile."""
        block = self._next[0]
        while block:
            yield block
            block = self._next[block]

    def reference(self, block: int) -> None:
        """One more sequence holds the block; it leaves the free list if it was there."""
        if self._next[block] != _NONE:
            self._unlink(block)
        self.num_references[block] += 1

    def release(self, block: int, *, is_cached: bool) -> None:
        """One sequence less holds the block; the last one and no lease: it comes back to the free list.

        is_cached: its content is worth keeping, so it goes to the back.
        """
        self.num_references[block] -= 1
        self._return(block, is_cached=is_cached)

    def hold(self, block: int) -> None:
        """One more lease holds the block."""
        if self._next[block] != _NONE:
            self._unlink(block)
        self.num_holds[block] += 1

    def end_hold(self, block: int, *, is_cached: bool) -> None:
        """One lease less holds the block; otherwise as `release`."""
        self.num_holds[block] -= 1
        self._return(block, is_cached=is_cached)

    def move_to_front(self, block: int) -> None:
        """An idle block has lost its content: it is to be given out first."""
        self._unlink(block)
        self._link_behind(0, block)

    def _return(self, block: int, *, is_cached: bool) -> None:
        if not self.num_references[block] and not self.num_holds[block]:
            self._link_behind(self._previous[0] if is_cached else 0, block)

    def _unlink(self, block: int) -> None:
        before, behind = self._previous[block], self._next[block]
        self._next[before] = behind
        self._previous[behind] = before
        self._next[block] = _NONE
        self.num_free -= 1

    def _link_behind(self, before: int, block: int) -> None:
        behind = self._next[before]
        self._next[before] = block
        self._previous[block] = before
        self._next[block] = behind
        self._previous[behind] = block
        self.num_free += 1
