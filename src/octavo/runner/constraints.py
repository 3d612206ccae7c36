"""The constraints of all rows: made when a sequence enters its row, told each token that is sampled.

Owns: which rows are constrained, which of them have come to an end.
Does not own: the state of one (constraint.py), compiled grammars and when they are there (engine/grammars.py).
Invariants: rows without a constraint cost no Python at all. A row that ended stays so until another sequence enters it:
steps in flight behind the end repeat it and compute nothing. Whatever a grammar raises ends its own sequence only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from octavo.base.errors import GrammarError
from octavo.base.log import get_logger
from octavo.grammar.interface import CompiledGrammar
from octavo.kernels.ops import IntArray
from octavo.proto.failure import Failure, internal_failure
from octavo.proto.plan import NewSequence
from octavo.proto.structured import PreparedGrammar
from octavo.runner.constraint import SequenceConstraint
from octavo.runner.masks import as_failure

logger = get_logger(__name__)

NOTHING_LEFT = Failure("request", "the masks and constraints of this request leave no token to choose")


class GrammarSource(Protocol):
    """Where grammars come from."""

    @property
    def end_token_ids(self) -> Collection[int]:
        """Tokens that masks admit where a text may end."""
        ...

    def find(self, grammar: PreparedGrammar) -> CompiledGrammar:
        """One that was compiled before. Raises InvariantError when there is none; never waits."""
        ...


class Taken(NamedTuple):
    """What follows from a token."""

    forced: list[int]
    """Tokens that must come next."""
    is_end: bool = False
    error: Failure | None = None
    """Why it is the end; None: the text is complete."""


class RowConstraints:
    """Constraints of `max_num_seqs` rows. Without grammars, sequences that need one cannot be computed."""

    def __init__(self, grammars: GrammarSource | None, *, max_num_seqs: int) -> None:
        self._grammars = grammars
        self._constraints: dict[int, SequenceConstraint] = {}
        self._is_constrained: npt.NDArray[np.bool_] = np.zeros(max_num_seqs, np.bool_)
        self._jumping: set[int] = set()
        """Rows whose forced tokens are taken at once."""
        self.ended: dict[int, Failure | None] = {}
        """Row -> why its text ended in it; None: it is complete."""

    def admit(self, new: NewSequence, *, may_jump: bool) -> Failure | None:
        """Make a row's constraint, if its sequence has one. Returns what is wrong with it, None if nothing.

        may_jump: nothing but the constraint decides about a token that it leaves no choice about.
        Output that a sequence brings along was admitted by the same grammar before, so that a refusal is a bug; its
        client is told what other constraints that cannot be kept tell, since no retry would end better.
        """
        self.free([new.row])
        if not new.sampling.is_constrained:
            return None
        try:
            constraint = self._make(new)
        except GrammarError as error:
            num_output = len(new.token_ids) - new.num_prompt_tokens
            logger.error(
                "request %s: a bug: its grammar refuses its %d tokens of earlier output, taken up again after a "
                "preemption or a replay: %s",
                new.request_id,
                num_output,
                error,
            )
            return as_failure(error)
        except Exception as error:
            return internal_failure(error)
        self._constraints[new.row] = constraint
        self._is_constrained[new.row] = True
        if may_jump:
            self._jumping.add(new.row)
        return None

    def _make(self, new: NewSequence) -> SequenceConstraint:
        wanted = new.sampling.prepared_grammar
        if wanted is None:
            if new.sampling.structured_outputs is not None:
                raise LookupError("its grammar was not prepared")
            return SequenceConstraint(new, None, end_token_ids=())
        if self._grammars is None:
            raise LookupError("this engine has no grammars")
        matcher = self._grammars.find(wanted).start()
        return SequenceConstraint(new, matcher, end_token_ids=self._grammars.end_token_ids)

    def free(self, rows: Iterable[int]) -> None:
        """Forget the constraints of some rows."""
        for row in rows:
            self.ended.pop(row, None)
            if self._constraints.pop(row, None) is not None:
                self._is_constrained[row] = False
                self._jumping.discard(row)

    def among(self, rows: IntArray) -> dict[int, SequenceConstraint]:
        """Place in `rows` -> constraint, for those that have one."""
        if not self._constraints:
            return {}
        places = np.flatnonzero(self._is_constrained[rows]).tolist()
        return {place: self._constraints[int(rows[place])] for place in places}

    def take(self, row: int, token_id: int, *, room: int) -> Taken:
        """Tell a constrained row the token it sampled. At most `room` forced tokens may follow."""
        constraint = self._constraints[row]
        try:
            constraint.feed([token_id])
            forced = constraint.forced_tokens()[:room] if row in self._jumping else []
            if forced:
                constraint.feed(forced)
            if not constraint.is_complete:
                return Taken(forced)
        except Exception as error:
            return self._end(row, as_failure(error))
        return self._end(row, None, forced)

    def note_nothing_left(self, row: int) -> Taken:
        """Masks and biases left a row no token: its text is complete if its grammar says so, else a dead end."""
        constraint = self._constraints.get(row)
        try:
            is_complete = constraint is not None and constraint.may_stop_here
        except Exception as error:
            return self._end(row, as_failure(error))
        return self._end(row, None if is_complete else NOTHING_LEFT)

    def note_error(self, row: int, error: Failure) -> Taken:
        """A row's mask could not be made."""
        return self._end(row, error)

    def _end(self, row: int, error: Failure | None, forced: list[int] | None = None) -> Taken:
        self.ended[row] = error
        return Taken(forced or [], is_end=True, error=error)
