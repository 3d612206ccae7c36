"""A small engine behind AsyncLLM, and requests of every kind whose whole output can be compared."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import asynccontextmanager
from pathlib import Path

from octavo.config.load import load_config
from octavo.engine.front.async_llm import AsyncLLM
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.input.preparation import RequestTerms
from octavo.fault.state import EngineState
from octavo.proto.sampling import RequestOutputKind, SamplingParams

DELTA = RequestOutputKind.DELTA
SMALL = {"kernel_backend": "reference", "max_num_seqs": 16, "max_num_batched_tokens": 64, "num_threads": 1}


def request_mix(num_tokens=120):
    """(prompt, params) of 8 requests: greedy, seeded, penalties, stop strings, logprobs, several of each."""

    def params(**given):
        return SamplingParams(
            **({"max_tokens": num_tokens, "ignore_eos": True, "output_kind": DELTA, "temperature": 0.0} | given)
        )

    return [
        ("greedy", params()),
        ("seeded", params(temperature=1.0, seed=7)),
        ("seeded differently", params(temperature=0.8, top_p=0.9, seed=8)),
        ("penalties", params(temperature=0.7, seed=9, repetition_penalty=1.3, presence_penalty=0.5)),
        ("frequency", params(frequency_penalty=0.7, min_tokens=20)),
        # A stop string that the tiny model hardly writes: the text is held back and matched across the pause.
        ("stop strings", params(temperature=1.0, seed=10, stop=["zzzz", "the end of"])),
        ("logprobs", params(temperature=1.0, seed=11, logprobs=3, prompt_logprobs=2)),
        ("several", params(temperature=1.0, seed=12, n=2, logprobs=1)),
    ]


async def collect(stream):
    """Everything of one stream of DELTA outputs, joined: what an undisturbed run is compared by."""
    joined = {}
    prompt_logprobs = []
    async for output in stream:
        prompt_logprobs += output.prompt_logprobs or []
        for part in output.outputs:
            whole = joined.setdefault(part.index, {"text": "", "ids": [], "logprobs": [], "end": None})
            whole["text"] += part.text
            whole["ids"] += part.token_ids
            whole["logprobs"] += part.logprobs or []
            whole["end"] = (part.finish_reason, part.stop_reason, part.error)
    return {"outputs": joined, "prompt_logprobs": prompt_logprobs}


@asynccontextmanager
async def small_engine(folder: Path, engine_options=None, **options):
    """A started AsyncLLM that is shut down at the end."""
    config = load_config({"model": str(folder), **SMALL, **(engine_options or {})}, usage="server")
    llm = await AsyncLLM.start(config, AsyncOptions(**options))
    try:
        yield llm
    finally:
        await llm.shutdown()


async def start_all(llm, requests):
    """One task a request."""
    preparation = await llm.preparation()
    prepared = [
        await preparation.prepare(prompt, params, RequestTerms(request_id=f"r{number}"))
        for number, (prompt, params) in enumerate(requests)
    ]
    streams = [llm.open(request) for request in prepared]
    return streams, [asyncio.create_task(collect(stream)) for stream in streams]


def num_tokens_of(stream):
    """Tokens received so far of each sequence."""
    return [len(continuation.token_ids) for continuation in stream.live.continuations]


async def until(condition, timeout_s=20.0):
    """Wait for something to become true; returns the seconds it took."""
    started_s = time.monotonic()
    while not condition():
        if time.monotonic() - started_s > timeout_s:
            raise TimeoutError("it did not happen")
        await asyncio.sleep(0.002)
    return time.monotonic() - started_s


async def kill_engine(llm, number=signal.SIGKILL):
    """Signal the engine's process."""
    os.kill(llm.engine_pid, number)


def is_healthy(llm):
    return llm.state is EngineState.HEALTHY


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_s(pid):
    """Seconds of processor time of all threads of a process."""
    total_ns = 0
    for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        total_ns += int(schedstat.read_text().split()[0])
    return total_ns / 1e9
