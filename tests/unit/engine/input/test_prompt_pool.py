"""Work off the event loop is bounded in number, time and size."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.errors import OverloadedError, ValidationError
from octavo.engine.input.prompt_pool import NUM_THREADS, BoundedTokenizer, PromptPool


def in_pool(scenario, **limits):
    """Run scenario(pool, gate); work that waits for the gate is let go at the end."""

    async def main():
        pool = PromptPool(**({"max_pending": 10, "timeout_s": 5.0} | limits))
        gate = threading.Event()
        try:
            return await scenario(pool, gate)
        finally:
            gate.set()
            pool.close()

    return asyncio.run(main())


def test_work_runs_on_another_thread_and_its_errors_come_back():
    async def scenario(pool, gate):
        assert await pool.run(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0)

    in_pool(scenario)


def test_too_much_waiting_is_refused_at_once_and_taken_again_later():
    async def scenario(pool, gate):
        waiting = [asyncio.create_task(pool.run(gate.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError, match="3 prompts wait"):
            await pool.run(gate.wait)
        gate.set()
        await asyncio.gather(*waiting)
        await asyncio.sleep(0.01)
        assert await pool.run(lambda: 5) == 5

    in_pool(scenario, max_pending=3)


def test_work_that_takes_too_long_is_the_requests_fault_and_a_long_wait_is_not():
    async def scenario(pool, gate):
        running = [asyncio.create_task(pool.run(gate.wait)) for _ in range(NUM_THREADS)]
        await asyncio.sleep(0.01)
        with pytest.raises(OverloadedError, match="waited"):
            await pool.run(gate.wait)
        for task in running:
            with pytest.raises(ValidationError, match="took longer"):
                await task

    in_pool(scenario, timeout_s=0.05)


@pytest.mark.parametrize("text", ["a" * 40, "é" * 20, "\U0001f600" * 10])
def test_a_text_that_cannot_fit_is_refused_by_its_bytes_before_it_is_tokenized(text):
    class Counting(ByteTokenizer):
        num_calls = 0

        def encode(self, text, *, add_special_tokens=True):
            self.num_calls += 1
            return super().encode(text, add_special_tokens=add_special_tokens)

    inner = Counting()
    bounded = BoundedTokenizer(inner, max_model_len=10, max_token_bytes=4)
    assert len(bounded.encode(text)) == 40
    with pytest.raises(ValidationError, match=r"maximum context length is 10 tokens.*41 bytes.*at least 11 tokens"):
        bounded.encode(text + "x")
    assert inner.num_calls == 1


def test_lone_surrogates_are_measured_and_left_to_the_tokenizer():
    bounded = BoundedTokenizer(ByteTokenizer(), max_model_len=10, max_token_bytes=4)
    with pytest.raises(UnicodeEncodeError):
        bounded.encode("\ud800")
