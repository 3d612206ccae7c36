"""CallListParser: several calls as one JSON list, [{"name": ..., ...}, ...].

Owns: what stands between the objects of such a list. Commas may be missing and the closing bracket too.
Does not own: where a list may begin.
"""

from __future__ import annotations

from octavo.parsers.call_object import CallShape, read_call
from octavo.parsers.cursor import BLANK, Steps
from octavo.parsers.machine import GrammarParser


class CallListParser(GrammarParser):
    """For formats that write lists."""

    def _read_list(self, shape: CallShape) -> Steps[None]:
        """From the bracket on, which has been looked at, while keeping. What is no call becomes content."""
        self._cursor.take(1)
        has_call = yield from self._try_call(self._read_item(shape))
        while has_call and (follower := (yield from self._look_behind_call("]", ",", "{"))):
            if follower == "]":
                self._drop("]")
                return
            if follower == ",":
                self._cursor.take(1)
            has_call = yield from self._try_call(self._read_item(shape))

    def _read_item(self, shape: CallShape) -> Steps[None]:
        yield from self._cursor.skip(BLANK)
        yield from read_call(self._cursor, self._writer, shape)
