"""What is watched during a soak: memory, descriptors, threads, blocks, requests.

Owns: one reading.   Does not own: when it is taken (run.py), what it must be (verdict.py).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict, dataclass

from octavo.bench.server.metrics_page import sum_of
from octavo.bench.server.usage import Usage, read_server
from octavo.bench.soak.exchange import Request, perform, render

MIB = 1024 * 1024
CLOSE_S = 0.1
GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """At one moment. `is_quiet`: no client was under way."""

    at_s: float
    is_quiet: bool
    front_end: Usage
    """With the process that renders its templates."""
    engine: Usage
    num_running: float
    num_waiting: float
    kv_share: float
    """Blocks in use, of all; cached ones that nobody uses are not among them."""
    num_requests: int
    """Done by the clients so far."""

    @property
    def is_idle(self) -> bool:
        """Nothing is under way in the server."""
        return not (self.num_running or self.num_waiting or self.kv_share)

    def as_json(self) -> dict[str, object]:
        """All fields."""
        return asdict(self)

    def __str__(self) -> str:
        memory = [f"{usage.rss_bytes / MIB:.1f} MiB" for usage in (self.front_end, self.engine)]
        return (
            f"{self.at_s / 60:6.1f} min {'quiet' if self.is_quiet else '     '} front end {memory[0]}, "
            f"engine {memory[1]}, {self.num_running:.0f} running, {self.num_waiting:.0f} waiting, "
            f"{self.num_requests:,} requests"
        )


async def take_reading(pid: int, port: int, *, at_s: float, is_quiet: bool, num_requests: int) -> Reading:
    """From /proc and /metrics. Raises OSError and ResponseError when the server does not answer."""
    page = Request(name="metrics", data=render("GET", "/metrics"))
    text = (await perform(page, port, random.Random(0))).body.decode()
    running, waiting, kv_share = (sum_of(text, name) for name in GAUGES)
    # The server must have seen the end of this connection, too.
    await asyncio.sleep(CLOSE_S)
    usage = read_server(pid)
    return Reading(
        at_s=at_s,
        is_quiet=is_quiet,
        front_end=usage.without_engine,
        engine=usage.engine,
        num_running=running,
        num_waiting=waiting,
        kv_share=kv_share,
        num_requests=num_requests,
    )
