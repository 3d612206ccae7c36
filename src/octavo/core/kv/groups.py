"""What each kind of layer group needs of its block table.

Owns: which blocks a step writes, which it still reads, where a prefix can be picked up.
Does not own: blocks, sequences; a rule is a pure function of positions.

When may a block behind a window be let go? When no later step reads it. The step being planned starts at `computed`
and sees back to `computed - window + 1`; later ones see less far. Steps in flight may read further back, but they run
before any step that could write the block again, because the executor runs plans in order. So it is the start of the
step being planned that counts, not the tokens whose step has returned; this holds fewer blocks by what is in flight.
Two things take tokens back: a failed step, after which sequences start again from the prefix cache, and rejected
drafts, for which the caller names the lowest start possible. Both are safe.

A recurrent group keeps one state a sequence, in a page of its own (padded to the size of the others). Entry i of its
table is the state after the last position computed within block i; a step that ends in the same block updates it in
place, one that ends in a later block writes another page, and the old one is let go by the step after. The state of a
full block is hence never changed again and can be shared; it exists only where a step ended exactly there. Requests of
the same step cannot share it yet: a step's attention writes all keys and values before it reads any, but a state is
read where the step starts and there only when it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from octavo.base.errors import InvariantError
from octavo.proto.kv import GroupKind, KvGroup

NEVER = math.inf
IsPresent = Callable[[int], bool]


class GroupRule(Protocol):
    """Positions are absolute, blocks logical. Methods change nothing."""

    @property
    def kind(self) -> GroupKind: ...

    @property
    def is_shared_within_step(self) -> bool:
        """Whether a request can read what another one of the same step writes."""
        ...

    def first_needed(self, computed: int) -> int:
        """First block that steps starting at `computed` or later read."""
        ...

    def release_at(self, computed: int) -> int | float:
        """The next start at which first_needed grows; NEVER for full attention."""
        ...

    def is_stored(self, block: int, end: int) -> bool:
        """Whether a step that ends at `end` stores something in this block, one it is the first to reach."""
        ...

    def is_complete(self, block: int, end: int) -> bool:
        """Whether a block below end // P is whole, and stays as it is, after a step that ends at `end`."""
        ...

    def find_hit(self, is_present: IsPresent, max_blocks: int) -> int:
        """The most leading blocks, up to max_blocks, behind which a sequence can go on with what is present."""
        ...


class FullRule:
    """Every position is read for ever."""

    kind: GroupKind = "full"
    is_shared_within_step = True

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size

    def first_needed(self, computed: int) -> int:
        return 0

    def release_at(self, computed: int) -> int | float:
        return NEVER

    def is_stored(self, block: int, end: int) -> bool:
        return True

    def is_complete(self, block: int, end: int) -> bool:
        return True

    def find_hit(self, is_present: IsPresent, max_blocks: int) -> int:
        for block in range(max_blocks):
            if not is_present(block):
                return block
        return max_blocks


class WindowRule:
    """A position sees itself and the window - 1 before it."""

    kind: GroupKind = "sliding_window"
    is_shared_within_step = True

    def __init__(self, block_size: int, window: int) -> None:
        self._block_size = block_size
        self._window = window

    def first_needed(self, computed: int) -> int:
        return max(0, computed - self._window + 1) // self._block_size

    def release_at(self, computed: int) -> int | float:
        return (self.first_needed(computed) + 1) * self._block_size + self._window - 1

    def is_stored(self, block: int, end: int) -> bool:
        return True

    def is_complete(self, block: int, end: int) -> bool:
        return True

    def find_hit(self, is_present: IsPresent, max_blocks: int) -> int:
        """From the right: a gap that one candidate's window reaches is reached by all candidates behind it."""
        hit = block = max_blocks
        while block > self.first_needed(hit * self._block_size):
            block -= 1
            if not is_present(block):
                hit = block
        return hit


class RecurrentRule:
    """One state a sequence; a step reads the state after position computed - 1 and stores the one after end - 1."""

    kind: GroupKind = "recurrent"
    is_shared_within_step = False

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size

    def first_needed(self, computed: int) -> int:
        return max(0, computed - 1) // self._block_size

    def release_at(self, computed: int) -> int | float:
        return (self.first_needed(computed) + 1) * self._block_size + 1

    def is_stored(self, block: int, end: int) -> bool:
        return block == (end - 1) // self._block_size

    def is_complete(self, block: int, end: int) -> bool:
        return end == (block + 1) * self._block_size

    def find_hit(self, is_present: IsPresent, max_blocks: int) -> int:
        for hit in range(max_blocks, 0, -1):
            if is_present(hit - 1):
                return hit
        return 0


def make_rules(groups: Sequence[KvGroup], block_size: int) -> tuple[GroupRule, ...]:
    """One rule a group, in order. Raises InvariantError for a window group without a window."""
    return tuple(_make_rule(index, group, block_size) for index, group in enumerate(groups))


def _make_rule(index: int, group: KvGroup, block_size: int) -> GroupRule:
    match group.kind:
        case "full":
            return FullRule(block_size)
        case "recurrent":
            return RecurrentRule(block_size)
        case "sliding_window":
            if group.window is None or group.window < 1:
                raise InvariantError(f"group {index}: window={group.window} of a sliding-window group")
            return WindowRule(block_size, group.window)
