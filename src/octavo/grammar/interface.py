"""What the rest of the engine sees of a grammar back end.

Owns: the three protocols.   Does not own: any library behind them, caching, threads.
Invariants: a back end and its compiled grammars may be used from several threads, a matcher by one user at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from octavo.proto.structured import GrammarSpec, PreparedGrammar


class Matcher(Protocol):
    """Where one text stands in its grammar.

    After a GrammarError it is dead: every later call raises that error again.
    """

    @property
    def is_accepting(self) -> bool:
        """The text may end here."""

    @property
    def is_complete(self) -> bool:
        """Nothing but an end is possible. May be found out only by the next mask, which then admits the end alone."""

    def accept(self, token_ids: Sequence[int]) -> None:
        """The text goes on with these tokens. Raises GrammarError when one is not allowed. Cost: 2 to 9 us a token."""

    def fill_mask(self, out: npt.NDArray[np.int32]) -> None:
        """Write which tokens may come next into `out`, int32 [ceil(V/32)]: bit t % 32 of word t // 32 is token t.

        End tokens are set only where the text may end. The interpreter lock is free meanwhile. Raises GrammarError when
        the limits of a step are reached or nothing is allowed. Cost: 10 to 200 us, a few ms at worst.
        """

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, in order: each the only one its mask admits. Empty when there is a choice."""

    def rollback(self, num_tokens: int) -> None:
        """Forget the last tokens accepted."""

    def fork(self) -> Matcher:
        """A matcher of its own at the same place."""


class CompiledGrammar(Protocol):
    """A grammar ready for any number of texts."""

    @property
    def num_bytes(self) -> int:
        """Memory it holds, estimated from above."""

    def start(self) -> Matcher:
        """A matcher at the beginning of a text. Cost: tens of microseconds."""


class GrammarBackend(Protocol):
    """Compiles grammars for one tokenizer."""

    def prepare(self, spec: GrammarSpec) -> PreparedGrammar:
        """Check a constraint, by compiling it too. What it was about the last ones is remembered.

        Raises ValidationError, which names the parameter and where in it the fault lies. Bounded in time and memory.
        Cost: Python over all of the text: 3 ms a KB at first, 110 ms for 78 KB.
        """

    def compile(self, grammar: PreparedGrammar) -> CompiledGrammar:
        """What `prepare` of any back end for the same tokenizer made. The interpreter lock is free meanwhile.

        Raises GrammarError where it fails all the same.
        """
