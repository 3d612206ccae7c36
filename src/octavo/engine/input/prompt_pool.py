"""A few threads for what must not hold up the event loop: templates and tokenizing.

Owns: the threads, and how much may wait for how long.   Does not own: the work.
A thread cannot be stopped: work that runs past its time is abandoned, not ended, and keeps its place in the pool until
it returns. That is why its size is bounded before (text_limit.py) and templates of requests are not run here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from octavo.base.errors import OverloadedError, ValidationError

T = TypeVar("T")

NUM_THREADS = 2


class PromptPool:
    """Bounded in queue and time. On one event loop."""

    def __init__(self, *, max_pending: int, timeout_s: float) -> None:
        self._max_pending = max_pending
        self._timeout_s = timeout_s
        self._num_pending = 0
        self._threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="octavo-prompts")

    async def run(self, work: Callable[[], T]) -> T:
        """Do it on a thread. Raises OverloadedError when too much waits, ValidationError when it takes too long."""
        if self._num_pending >= self._max_pending:
            raise OverloadedError(f"{self._num_pending} prompts wait to be tokenized: the limit")
        loop = asyncio.get_running_loop()
        future: Future[T] = self._threads.submit(work)
        self._num_pending += 1
        future.add_done_callback(lambda _: self._note_done(loop))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._timeout_s)
        except TimeoutError:
            if future.cancelled():
                raise OverloadedError(f"the prompt waited {self._timeout_s:g} s for its turn") from None
            raise ValidationError(
                f"the prompt took longer than {self._timeout_s:g} s to be rendered and tokenized; shorten it",
                parameter="prompt",
            ) from None

    def _note_done(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._count_down)
        except RuntimeError:  # the loop was closed meanwhile
            self._count_down()

    def _count_down(self) -> None:
        self._num_pending -= 1

    def close(self) -> None:
        """Take no more work; what runs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class BoundedTokenizer:
    """A tokenizer that refuses texts which cannot fit the context, before it looks at them.

    max_token_bytes: the longest text a token of the vocabulary has.
    """

    def __init__(self, tokenizer: Any, *, max_model_len: int, max_token_bytes: int) -> None:
        self._tokenizer = tokenizer
        self._max_model_len = max_model_len
        self._max_token_bytes = max_token_bytes

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """See Tokenizer.encode. Raises ValidationError for a text of too many bytes."""
        num_bytes = len(text) if text.isascii() else len(text.encode(errors="replace"))
        num_tokens_at_least = -(-num_bytes // self._max_token_bytes)
        if num_tokens_at_least > self._max_model_len:
            raise ValidationError(
                f"This model's maximum context length is {self._max_model_len} tokens. However, your prompt has "
                f"{num_bytes} bytes, which are at least {num_tokens_at_least} tokens. Shorten the prompt.",
                parameter="input_tokens",
                value=num_tokens_at_least,
            )
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return ids

    def apply_chat_template(self, messages: Any, **options: Any) -> str | list[int]:
        """See Tokenizer.apply_chat_template."""
        rendered: str | list[int] = self._tokenizer.apply_chat_template(messages, **options)
        return rendered
