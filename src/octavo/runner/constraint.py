"""What one sequence may write next: its grammar, and its budget of reasoning.

Owns: when the grammar begins to hold, what of the output it is told, when the text must end.
Does not own: grammars (grammar/), the masks' memory and the rows (constraints.py), the choice of a token (ops).
Invariants: the state is a function of the output tokens alone. The matcher is told every token from the first that the
grammar holds for, but never an end token: that ends the text and is the scheduler's business.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from octavo.grammar.interface import Matcher
from octavo.kernels.ops import IntArray
from octavo.proto.plan import NewSequence
from octavo.proto.sampling import SamplingParams
from octavo.runner.thinking import MarkerScan, ThinkingBudget


class SequenceConstraint:
    """State of one sequence; see `feed`."""

    def __init__(self, new: NewSequence, matcher: Matcher | None, *, end_token_ids: Collection[int]) -> None:
        """end_token_ids: those that a grammar's masks admit where a text may end.

        Raises what the matcher raises for output that its grammar does not allow.
        """
        sampling = new.sampling
        own_ends = sampling.all_stop_token_ids.union(new.eos_token_ids)
        self._matcher = matcher
        self._ends = own_ends.intersection(end_token_ids)
        self._foreign_ends = sorted(set(end_token_ids) - own_ends)
        """Ends that would not end this text (ignore_eos): they are never allowed."""
        self._marker = MarkerScan(sampling.structured_after) if matcher and sampling.structured_after else None
        self._budget = _make_budget(sampling)
        self._min_tokens = sampling.min_tokens
        self._num_output = 0
        self._is_ended = False
        self.feed(new.token_ids[new.num_prompt_tokens :])

    def feed(self, token_ids: Sequence[int]) -> None:
        """The output goes on with these tokens. Raises what the matcher raises for one that is not allowed."""
        first = self._note(token_ids)
        if self._matcher is None or self._is_ended or first == len(token_ids):
            return
        told = list(token_ids[first:])
        if self._ends and not self._ends.isdisjoint(told):
            self._is_ended = True
            told = told[: next(idx for idx, token_id in enumerate(told) if token_id in self._ends)]
        if told:
            self._matcher.accept(told)

    def _note(self, token_ids: Sequence[int]) -> int:
        """Count the tokens. Returns the place of the first of them that the grammar holds for."""
        self._num_output += len(token_ids)
        if self._budget is not None:
            for token_id in token_ids:
                self._budget.feed(token_id)
        if self._marker is None:
            return 0
        for idx, token_id in enumerate(token_ids):
            if self._marker.feed(token_id):
                self._marker = None
                return idx + 1
        return len(token_ids)

    def fill_mask(self, out: IntArray) -> bool:
        """Write what may come next into `out` [ceil(V / 32)]. False: everything may, and nothing was written.

        Raises what the matcher raises when it cannot say.
        """
        forced = None if self._budget is None else self._budget.forced_token
        if forced is not None:
            out[:] = 0
            _set_bit(out, forced)
            return True
        if self._matcher is None or self._marker is not None or self._is_ended:
            return False
        self._matcher.fill_mask(out)
        for token_id in self._foreign_ends:
            _clear_bit(out, token_id)
        return True

    @property
    def may_stop_here(self) -> bool:
        """The grammar is satisfied as it stands."""
        return self._holds and self._matcher is not None and self._matcher.is_accepting

    @property
    def is_complete(self) -> bool:
        """Nothing can follow: not by the grammar, and no end token either."""
        if not self._holds or self._matcher is None or not self._matcher.is_complete:
            return False
        return not self._ends or self._num_output < self._min_tokens

    @property
    def _holds(self) -> bool:
        return self._marker is None and not self._is_ended

    def forced_tokens(self) -> list[int]:
        """Tokens of which each is the only one that may come, in order, without any that end the text."""
        if self._matcher is None or not self._holds or self._budget is not None:
            return []
        forced = self._matcher.forced_tokens()
        for idx, token_id in enumerate(forced):
            if token_id in self._ends or token_id in self._foreign_ends:
                return forced[:idx]
        return forced


def _make_budget(sampling: SamplingParams) -> ThinkingBudget | None:
    if sampling.thinking_token_budget is None or sampling.thinking_end_token_ids is None:
        return None
    return ThinkingBudget(
        sampling.thinking_token_budget, start=sampling.thinking_start_token_ids, end=sampling.thinking_end_token_ids
    )


def _set_bit(words: IntArray, token_id: int) -> None:
    words.view(np.uint32)[token_id >> 5] |= np.uint32(1 << (token_id & 31))


def _clear_bit(words: IntArray, token_id: int) -> None:
    words.view(np.uint32)[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))
