"""One of several front ends of an engine, for the tests: runs requests and reports what came of them.

Usage: python front_end.py MODEL CLIENT_IDX FD NUM_TOKENS
Prints "ready", then for each line on stdin the greedy continuation of that line as JSON ids; "hold" holds a request.
"""

from __future__ import annotations

import asyncio
import json
import sys

from octavo.config.load import load_config
from octavo.engine.front.async_llm import AsyncLLM
from octavo.engine.front.async_options import AsyncOptions
from octavo.proto.sampling import SamplingParams


async def main(model: str, client_idx: int, fd: int, num_tokens: int) -> None:
    config = load_config({"model": model}, usage="server")
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True, temperature=0.0)
    async with AsyncLLM(config, AsyncOptions(client_idx=client_idx, launcher_fd=fd)) as llm:
        print("ready", flush=True)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            ids = []
            # The same request id in every front end: names must not meet in the engine.
            async for output in llm.generate(line, params, "the-same-id"):
                if not ids:
                    print("begun", flush=True)
                ids = output.outputs[0].token_ids
            print(json.dumps(ids), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
