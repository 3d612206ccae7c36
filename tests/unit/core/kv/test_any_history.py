"""Random histories of plans, results, failures, aborts, leases and resets on tiny pools, against simulated memory.

The executor here runs steps in order, late, and writes what each position holds into the blocks that the reservations
named; before a step may count, everything its positions see must be there. A stale, swapped, missing or too early
freed block is found by its content, whatever the counts say.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from fakes.kv import FULL, RECURRENT, P, gemma_groups, window_group
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from octavo.core.kv.leases import Lease
from octavo.core.kv.manager import KvManager
from octavo.core.kv.plan import KvPlan, Reservation
from octavo.core.kv.sequence import KvSequence
from octavo.proto.kv import KvGroup

MAX_CHUNK = 11
MAX_TOKENS = 40
DEPTH = 3
GROUP_SETS = [
    (FULL,),
    (window_group(7),),
    (RECURRENT,),
    (FULL, window_group(2)),
    (FULL, RECURRENT),
    (window_group(3), RECURRENT, FULL),
    gemma_groups(6),
]


@dataclass(eq=False)
class Writer:
    """A request: its whole text, decided beforehand, of which the planner knows the leading part."""

    text: tuple[int, ...]
    salt: str | None
    num_prompt: int
    reads_cache: bool
    seq: KvSequence = field(init=False)
    known: list[int] = field(init=False)
    epoch: int = 0
    """Grows with each roll-back; shares of older ones change nothing."""
    computed: int = 0
    is_running: bool = False
    tables: list[list[int]] = field(default_factory=list)
    """The row's block tables as the runner keeps them, from reservations alone."""

    def __post_init__(self) -> None:
        self.seq = KvSequence(salt=self.salt)
        self.known = list(self.text[: self.num_prompt])

    def content(self, num_tokens: int) -> tuple[object, ...]:
        """What KV that depends on the first num_tokens tokens holds."""
        return (self.salt, self.text[:num_tokens])

    def roll_back(self) -> None:
        """Start again from nothing."""
        self.epoch += 1
        self.computed, self.is_running, self.tables = 0, False, []


@dataclass
class Share:
    """A writer's part of a step, with the tables as they were sent."""

    writer: Writer
    start: int
    end: int
    tables: list[list[int]]
    epoch: int


@dataclass
class Memory:
    """What blocks hold. Attention: by position within the block; recurrent: the state, at position 0."""

    groups: tuple[KvGroup, ...]
    content: dict[tuple[int, int], object] = field(default_factory=dict)

    def run(self, shares: list[Share]) -> None:
        """All writes of attention first, as in a layer; a state is read before it is written."""
        for share in shares:
            self._check_states(share)
        for share in shares:
            self._write(share)
        for share in shares:
            self._check_attention(share)

    def _check_states(self, share: Share) -> None:
        for group, table in zip(self.groups, share.tables, strict=True):
            if group.kind == "recurrent" and share.start:
                block = table[(share.start - 1) // P]
                wanted = share.writer.content(share.start)
                found = self.content.get((block, 0)) if block else None
                assert found == wanted, f"block {block}: not the state at {share.start}"

    def _write(self, share: Share) -> None:
        for group, table in zip(self.groups, share.tables, strict=True):
            if group.kind == "recurrent":
                assert table[(share.end - 1) // P]
                self.content[table[(share.end - 1) // P], 0] = share.writer.content(share.end)
                continue
            for position in range(share.start, share.end):
                assert table[position // P], f"position {position} has no block"
                self.content[table[position // P], position % P] = share.writer.content(position + 1)

    def spoil(self, share: Share) -> None:
        """A step that fails may have left anything where it was to write."""
        for group, table in zip(self.groups, share.tables, strict=True):
            if group.kind == "recurrent":
                self.content[table[(share.end - 1) // P], 0] = "garbage"
            else:
                for position in range(share.start, share.end):
                    self.content[table[position // P], position % P] = "garbage"

    def _check_attention(self, share: Share) -> None:
        for group, table in zip(self.groups, share.tables, strict=True):
            if group.kind == "recurrent":
                continue
            first = max(0, share.start - group.window + 1) if group.window else 0
            for position in range(first, share.end):
                block = table[position // P]
                found = self.content.get((block, position % P)) if block else None
                assert found == share.writer.content(position + 1), f"block {block}: not position {position}"


@st.composite
def make_writer(draw: st.DrawFn) -> Writer:
    """Texts agree up to a branching point, around a block border."""
    branch = draw(st.integers(0, 4))
    fork = (40, 16, 11, 8, 4)[branch]
    text = tuple(idx + 100 * branch * (idx >= fork) for idx in range(MAX_TOKENS))
    num_prompt = draw(st.integers(1, 24))
    is_salted = draw(st.integers(0, 7)) == 7
    return Writer(text, "s" if is_salted else None, num_prompt, reads_cache=draw(st.integers(0, 7)) < 7)


ARRIVALS = make_writer()


def with_new_blocks(tables: list[list[int]], reservation: Reservation, num_groups: int) -> list[list[int]]:
    """A row's tables after the entries of a reservation have been written."""
    tables = [list(table) for table in tables] or [[] for _ in range(num_groups)]
    for group, first, block_ids in reservation.new_blocks:
        tables[group][first:] = block_ids
    return tables


class AnyHistory(RuleBasedStateMachine):
    @initialize(
        groups=st.sampled_from(GROUP_SETS), slack=st.integers(0, 30), is_caching=st.sampled_from([True] * 5 + [False])
    )
    def begin(self, groups: tuple[KvGroup, ...], slack: int, is_caching: bool) -> None:
        def make(num_blocks: int) -> KvManager:
            return KvManager(
                groups, num_blocks=num_blocks, block_size=P, hash_key=b"k", enable_prefix_caching=is_caching
            )

        peak = make(2).max_blocks_for(MAX_TOKENS, max_chunk=MAX_CHUNK)
        self.kv = make(peak + slack + 1)
        self.memory = Memory(groups)
        self.writers: list[Writer] = []
        self.in_flight: deque[tuple[int, list[Share]]] = deque()
        self.leases: list[Lease] = []
        self.next_step = 0
        self.now_s = 0.0

    # Requests.

    @rule(arrivals=st.lists(ARRIVALS, min_size=1, max_size=3))
    def arrive(self, arrivals: list[Writer]) -> None:
        self.writers += arrivals[: 6 - len(self.writers)]

    # Steps.

    @precondition(lambda self: len(self.in_flight) < DEPTH)
    @rule(data=st.data())
    def plan(self, data: st.DataObject) -> None:
        """A random round: advance, admit and preempt in random order; then commit it, or drop it."""
        plan = self.kv.begin()
        shares: dict[Writer, Share] = {}
        rolled_back: set[Writer] = set()
        for writer in data.draw(st.permutations(self.writers)):
            action = data.draw(st.sampled_from(["advance"] * 4 + ["preempt", "skip"]))
            if action == "advance":
                is_running = writer.is_running and writer not in rolled_back
                share = self._reserve(plan, writer, data.draw(st.integers(1, MAX_CHUNK)), is_running=is_running)
                if share is not None:
                    shares[writer] = share
            elif action == "preempt":
                victim = data.draw(st.sampled_from(self.writers))
                freed = {victim.seq, *plan.free(victim.seq)}
                for each in self.writers:
                    if each.seq in freed:
                        rolled_back.add(each)
                        shares.pop(each, None)
        if data.draw(st.integers(0, 9)) == 0:
            return
        self.kv.commit(plan)
        assert self.kv.num_free_blocks == plan.num_free_blocks
        for writer in rolled_back:
            writer.roll_back()
        for writer, share in shares.items():
            share.epoch = writer.epoch
            writer.is_running, writer.computed, writer.tables = True, share.end, share.tables
        if shares:
            self.in_flight.append((self.next_step, list(shares.values())))
        self.next_step += 1

    def _reserve(self, plan: KvPlan, writer: Writer, chunk: int, *, is_running: bool) -> Share | None:
        """The writer's next tokens; once all known ones are in flight, the one that is being sampled."""
        start, hit, tables = writer.computed, None, writer.tables
        if not is_running:
            start, tables = 0, []
            if writer.reads_cache:
                hit = plan.find_prefix(writer.seq, writer.known, len(writer.known) - 1)
                start = hit.num_tokens
        end = min(start + chunk, len(writer.known)) if start < len(writer.known) else start + 1
        if end > MAX_TOKENS:
            return None
        reservation = plan.try_reserve(
            writer.seq, writer.known, computed=start, end=end, hit=hit, step_id=self.next_step
        )
        if reservation is None:
            return None
        tables = with_new_blocks(tables, reservation, len(self.memory.groups))
        return Share(writer, start, end, tables, writer.epoch)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def result(self, data: st.DataObject) -> None:
        """The oldest step runs and returns; one of its rows may turn out bad."""
        _, shares = self.in_flight.popleft()
        self.memory.run(shares)
        for share in shares:
            writer = share.writer
            if share.epoch != writer.epoch:
                continue
            if data.draw(st.integers(0, 19)) == 0:
                self._stop(writer)
                self.writers.remove(writer)
                continue
            if share.end >= len(writer.known):
                writer.known = list(writer.text[: share.end + 1])
            self.kv.publish(writer.seq, share.end, writer.known)

    # Disturbances, one rule, so that they stay rarer than steps.

    @rule(data=st.data())
    def disturb(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from([self._abort, self._fail, self._reset, self._lease, self._end_lease, self._expire]))(
            data
        )

    def _abort(self, data: st.DataObject) -> None:
        if self.writers:
            writer = data.draw(st.sampled_from(self.writers))
            self._stop(writer)
            self.writers.remove(writer)

    def _fail(self, data: st.DataObject) -> None:
        """The oldest step fails half-way, having overwritten what it may; nothing behind it runs."""
        if not self.in_flight:
            return
        step_id, shares = self.in_flight[0]
        for share in shares:
            self.memory.spoil(share)
        self.kv.void_step(step_id)
        for _, each in self.in_flight:
            for share in each:
                if share.writer in self.writers:
                    self._stop(share.writer)
        self.in_flight.clear()

    def _reset(self, data: st.DataObject) -> None:
        is_idle = not self.leases and not any(writer.is_running for writer in self.writers)
        assert self.kv.reset_prefix_cache() == is_idle

    def _lease(self, data: st.DataObject) -> None:
        if len(self.leases) < 2:
            blocks = data.draw(st.lists(st.integers(1, self.kv.num_usable_blocks), min_size=1, max_size=3, unique=True))
            deadline_s = self.now_s + data.draw(st.integers(1, 5))
            self.leases.append(self.kv.acquire_lease(blocks, epoch=0, deadline_s=deadline_s))

    def _end_lease(self, data: st.DataObject) -> None:
        if self.leases:
            self.kv.release_lease(self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1))))

    def _expire(self, data: st.DataObject) -> None:
        self.now_s += data.draw(st.integers(1, 3))
        for lease in self.kv.expire_leases(self.now_s):
            assert lease.deadline_s <= self.now_s

    def _stop(self, writer: Writer) -> None:
        self.kv.free(writer.seq)
        writer.roll_back()

    @invariant()
    def holds(self) -> None:
        self.kv.check_integrity()
        for writer in self.writers:
            assert bool(writer.seq.capacity) == writer.is_running

    def teardown(self) -> None:
        """Everything comes back in the end, and the longest request fits alone."""
        for writer in self.writers:
            self._stop(writer)
        for lease in self.leases:
            self.kv.release_lease(lease)
        assert self.kv.num_free_blocks == self.kv.num_usable_blocks
        assert self.kv.reset_prefix_cache()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
