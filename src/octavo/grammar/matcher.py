"""The matcher of llguidance: where one text stands in its grammar.

Owns: the library's error states and panics, processor time of one text.
Does not own: compiling (llguidance_backend.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher

from octavo.base.errors import GrammarError
from octavo.grammar.library import is_panic
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.spelled_token import SpelledTokens

T = TypeVar("T")


class LlguidanceMatcher:
    """A Matcher (interface.py). Not for several threads at once."""

    __slots__ = (
        "_admits_end_alone",
        "_cpu_left_s",
        "_end_ids",
        "_failure",
        "_is_ended",
        "_limits",
        "_native",
        "_num_words",
        "_spelled",
        "_vocab_size",
    )

    def __init__(
        self,
        native: LLMatcher,
        vocab_size: int,
        end_token_ids: Collection[int],
        limits: GrammarLimits,
        spelled: SpelledTokens,
    ) -> None:
        self._native = native
        self._spelled = spelled
        self._end_ids = end_token_ids
        self._is_ended = False
        """An end token was accepted: the library, which may refuse it, was not told."""
        self._admits_end_alone = False
        """The mask at this place says so; the library may not have noticed."""
        self._vocab_size = vocab_size
        self._num_words = (vocab_size + 31) // 32
        self._limits = limits
        self._cpu_left_s = limits.spare_cpu_s
        self._failure: str | None = None

    @property
    def is_accepting(self) -> bool:
        self._check_alive()
        return self._call(self._native.is_accepting)

    @property
    def is_complete(self) -> bool:
        self._check_alive()
        return self._is_ended or self._admits_end_alone or self._call(self._native.is_stopped)

    def accept(self, token_ids: Sequence[int]) -> None:
        self._check_alive()
        self._admits_end_alone = False
        told = list(token_ids)
        for token_id in told:
            if not 0 <= token_id < self._vocab_size:
                self._fail(f"token {token_id} is none of the vocabulary's {self._vocab_size}")
        ending = bool(told) and told[-1] in self._end_ids
        if ending:
            told.pop()
        if self._is_ended and token_ids:
            self._fail("it has ended")
        if told and not self._timed(lambda: self._native.consume_tokens(told), len(told)):
            self._fail(self._reason())
        if ending and not self._call(self._native.is_accepting):
            self._fail("it may not end there")
        self._is_ended = ending

    def fill_mask(self, out: npt.NDArray[np.int32]) -> None:
        self._check_alive()
        assert out.dtype == np.int32
        assert out.shape == (self._num_words,)
        assert out.flags.c_contiguous
        self._timed(lambda: self._native.unsafe_compute_mask_ptr(out.ctypes.data, out.nbytes), 1)
        if self._native.is_error():
            self._fail(self._reason())
        if np.count_nonzero(out) <= len(self._end_ids) and self._native.is_accepting():
            # The end tokens are the only ones that are always admitted together.
            num_admitted = int(np.bitwise_count(out.view(np.uint32)).sum())
            self._admits_end_alone = num_admitted == len(self._end_ids)
        elif np.count_nonzero(out) == 1:
            self._write_as_text(out)

    def _write_as_text(self, out: npt.NDArray[np.int32]) -> None:
        """Where the one token of this mask is a special one that the grammar does not mean, begin its text instead."""
        words = out.view(np.uint32)
        place = int(np.flatnonzero(words)[0])
        token_id = place * 32 + int(words[place]).bit_length() - 1
        if words[place].bit_count() == 1 and self._call(lambda: self._spelled.is_spelled(self._native, token_id)):
            first = self._call(lambda: self._spelled.first_token(token_id))
            words[place] = 0
            words[first >> 5] = np.uint32(1 << (first & 31))

    def forced_tokens(self) -> list[int]:
        self._check_alive()
        tokens: list[int] = self._timed(self._native.compute_ff_tokens, 1)
        if self._native.is_error():
            self._fail(self._reason())
        return self._call(lambda: self._spelled.without_spelled(self._native, tokens))

    def rollback(self, num_tokens: int) -> None:
        self._check_alive()
        self._admits_end_alone = False
        if num_tokens and self._is_ended:
            self._is_ended = False
            num_tokens -= 1
        if num_tokens and not self._call(lambda: self._native.rollback(num_tokens)):
            self._fail(self._reason())

    def fork(self) -> LlguidanceMatcher:
        self._check_alive()
        native = self._call(self._native.deep_copy)
        copy = LlguidanceMatcher(native, self._vocab_size, self._end_ids, self._limits, self._spelled)
        copy._is_ended = self._is_ended
        copy._cpu_left_s = self._cpu_left_s
        return copy

    def _timed(self, function: Callable[[], T], num_tokens: int) -> T:
        """The library bounds one step; a text may also not be slow at every step."""
        begin_s = time.thread_time()
        result = self._call(function)
        self._cpu_left_s += num_tokens * self._limits.step_cpu_s - (time.thread_time() - begin_s)
        if self._cpu_left_s < 0:
            self._fail("its grammar takes too much time at every token")
        self._cpu_left_s = min(self._cpu_left_s, self._limits.spare_cpu_s)
        return result

    def _call(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except Exception as error:
            self._fail("the grammar library failed", error)
        except BaseException as error:
            if not is_panic(error):
                raise
            self._fail("the grammar library failed", error)
        raise AssertionError("_fail raises")

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise GrammarError(self._failure)

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        self._failure = f"the text cannot go on in its grammar: {reason}"
        raise GrammarError(self._failure) from cause

    def _reason(self) -> str:
        """The library's message in our words: its own shows tokens and states of the grammar."""
        message = self._native.get_error()
        if "satisfy the grammar" in message or "doesn't" in message:
            return "a token is not allowed there"
        if "NoExtension" in message:
            return "no token is allowed there"
        if any(word in message for word in ("Too many items", "Current row", "too many", "fuel", "limit", "too big")):
            return "a limit on the work of one step is reached"
        return "the grammar library refuses it"
