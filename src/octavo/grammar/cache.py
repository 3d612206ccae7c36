"""Compiled grammars that were used last, up to a number of bytes.

Owns: which are kept.   Does not own: compiling (compiler.py).   Lives in memory only. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from octavo.grammar.interface import CompiledGrammar
from octavo.proto.stats import GrammarStats
from octavo.proto.structured import PreparedGrammar


class GrammarCache:
    """What is least recently used goes first; a grammar that is larger than the whole cache is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._grammars: OrderedDict[PreparedGrammar, tuple[CompiledGrammar, int]] = OrderedDict()
        self._num_bytes = 0
        self._num_hits = 0
        self._num_misses = 0

    def __len__(self) -> int:
        return len(self._grammars)

    @property
    def num_bytes(self) -> int:
        """Of grammars and their texts, estimated from above."""
        return self._num_bytes

    def stats(self) -> GrammarStats:
        """As of now."""
        with self._lock:
            num_queries = self._num_hits + self._num_misses
            return GrammarStats(num_kept_bytes=self._num_bytes, num_queries=num_queries, num_hits=self._num_hits)

    def get(self, prepared: PreparedGrammar) -> CompiledGrammar | None:
        """The grammar, which is now the last one used; None when it is not here."""
        with self._lock:
            entry = self._grammars.get(prepared)
            if entry is None:
                self._num_misses += 1
                return None
            self._num_hits += 1
            self._grammars.move_to_end(prepared)
            return entry[0]

    def put(self, prepared: PreparedGrammar, grammar: CompiledGrammar) -> None:
        """Keep a grammar, as long as there is room."""
        # A text takes up to four bytes a character.
        num_bytes = grammar.num_bytes + 4 * len(prepared.text)
        with self._lock:
            self._remove(prepared)
            if num_bytes > self._max_bytes:
                return
            self._grammars[prepared] = (grammar, num_bytes)
            self._num_bytes += num_bytes
            while self._num_bytes > self._max_bytes:
                self._remove(next(iter(self._grammars)))

    def clear(self) -> None:
        with self._lock:
            self._grammars.clear()
            self._num_bytes = 0

    def _remove(self, prepared: PreparedGrammar) -> None:
        entry = self._grammars.pop(prepared, None)
        if entry is not None:
            self._num_bytes -= entry[1]
