"""What was found out about the constraints that came last: checking one is the dear part of taking it.

Owns: which verdicts are kept, up to a number of bytes.   Does not own: checking.   Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from octavo.base.errors import ValidationError
from octavo.proto.structured import GrammarSpec, PreparedGrammar

_BYTES_PER_CHAR = 4
_BYTES_PER_VERDICT = 500


class Refusal(NamedTuple):
    """Why a constraint is not taken."""

    message: str
    parameter: str | None
    pointer: str | None

    @classmethod
    def of(cls, error: ValidationError) -> Refusal:
        """What this error says."""
        return cls(str(error), error.parameter, error.value if isinstance(error.value, str) else None)

    def as_error(self) -> ValidationError:
        """A new error that says it again."""
        return ValidationError(self.message, parameter=self.parameter, value=self.pointer)


class Verdicts:
    """What is least recently used goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._verdicts: OrderedDict[GrammarSpec, tuple[PreparedGrammar | Refusal, int]] = OrderedDict()
        self.num_bytes = 0
        """Of constraints and verdicts, estimated from above."""

    def __len__(self) -> int:
        return len(self._verdicts)

    def find(self, spec: GrammarSpec) -> PreparedGrammar | None:
        """What it becomes; None: it is not known here. Raises the ValidationError of one that is refused."""
        with self._lock:
            entry = self._verdicts.get(spec)
            if entry is None:
                return None
            self._verdicts.move_to_end(spec)
        if isinstance(entry[0], Refusal):
            raise entry[0].as_error()
        return entry[0]

    def add(self, spec: GrammarSpec, verdict: PreparedGrammar | Refusal) -> None:
        """Remember it. One larger than all of the room is not kept."""
        said = verdict.text if isinstance(verdict, PreparedGrammar) else verdict.message
        num_bytes = _BYTES_PER_VERDICT + _BYTES_PER_CHAR * (len(spec.text) + len(said))
        with self._lock:
            self._remove(spec)
            if num_bytes > self._max_bytes:
                return
            self._verdicts[spec] = (verdict, num_bytes)
            self.num_bytes += num_bytes
            while self.num_bytes > self._max_bytes:
                self._remove(next(iter(self._verdicts)))

    def _remove(self, spec: GrammarSpec) -> None:
        entry = self._verdicts.pop(spec, None)
        if entry is not None:
            self.num_bytes -= entry[1]
