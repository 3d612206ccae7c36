"""A program that embeds an engine, to be killed: prints the engine's process id, then lives on.

Usage: python embedder.py MODEL
"""

from __future__ import annotations

import asyncio
import sys

from octavo.config.load import load_config
from octavo.engine.front.async_llm import AsyncLLM


async def main(model: str) -> None:
    options = {"model": model, "kernel_backend": "reference", "max_num_seqs": 4, "num_threads": 1}
    async with AsyncLLM(load_config(options, usage="server")) as llm:
        print(llm.engine_pid, flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
