"""The clients of a soak: so many at once, each with one request after the other, for as long as it is told.

Owns: clients, pausing them, what came back.   Does not own: requests (requests.py), what is watched (watch.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Collection

from octavo.base.errors import OctavoError
from octavo.bench.soak.exchange import Answer, Manner, Request, perform, render
from octavo.bench.soak.requests import CANARIES, KINDS, WIDE, Kind, RequestMix

MAX_PROBLEMS = 50
MAX_ASKED_BYTES = 400
EVENT_ERROR = b'data: {"error"'


class SoakLoad:
    """`start` it; `pause` waits until nothing is under way; `stop` at the end."""

    def __init__(self, port: int, mix: RequestMix, *, concurrency: int, seed: int) -> None:
        self._port = port
        self._mix = mix
        self._concurrency = concurrency
        self._seed = seed
        self._clients: list[asyncio.Task[None]] = []
        self._going = asyncio.Event()
        self._num_busy = 0
        self._rested = asyncio.Event()
        self._canary_bodies: dict[str, bytes] = {}
        self.counts: Counter[str] = Counter()
        """By kind and what the client did or got: "chat 200", "chat ABORTS"."""
        self._problems: dict[str, tuple[int, bytes]] = {}
        """What should not have been, at most MAX_PROBLEMS kinds of it: how often, and what was asked first."""

    @property
    def problems(self) -> list[str]:
        """A line each."""
        return [f"{count} x {what} (first asked: {asked!r})" for what, (count, asked) in self._problems.items()]

    async def start(self) -> None:
        """Ask each canary and for much at the same time, then let the clients go."""
        first = [
            Request(name=f"canary {index}", data=render("POST", "/v1/completions", body))
            for index, body in enumerate(CANARIES)
        ]
        wide = [
            Request(name="wide", data=render("POST", "/v1/completions", (WIDE % number).encode()))
            for number in range(self._concurrency)
        ]
        await asyncio.gather(*(self._do(request, random.Random(0)) for request in [*first, *wide]))
        self._clients = [asyncio.create_task(self._client(number)) for number in range(self._concurrency)]
        self.resume()

    async def pause(self) -> None:
        """Return once every client rests."""
        self._going.clear()
        while self._num_busy:
            self._rested.clear()
            await self._rested.wait()

    def resume(self) -> None:
        """Let the clients go on."""
        self._going.set()

    async def stop(self) -> None:
        """End the clients between two requests."""
        await self.pause()
        for client in self._clients:
            client.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._clients)

    async def _client(self, number: int) -> None:
        rng = random.Random(f"{self._seed}/{number}")
        while True:
            while not self._going.is_set():
                # A pause may have come between the event and this task's turn.
                await self._going.wait()
            self._num_busy += 1
            try:
                await self._do(self._mix.draw(rng), rng)
            finally:
                self._num_busy -= 1
                self._rested.set()

    async def _do(self, request: Request, rng: random.Random) -> None:
        try:
            answer = await perform(request, self._port, rng)
        except (OSError, OctavoError) as error:
            # TimeoutError is an OSError.
            self._report(request, f"{type(error).__name__}: {error}")
            return
        self.counts[f"{request.name} {answer.status or request.manner.name}"] += 1
        self._check(request, answer)

    def _check(self, request: Request, answer: Answer) -> None:
        if not answer.status:
            return
        if answer.status not in request.statuses:
            self._report(request, f"status {answer.status}: {answer.body[:300]!r}")
        elif answer.status == 200 and EVENT_ERROR in answer.body:
            self._report(request, f"an error in the stream: {answer.body[answer.body.index(EVENT_ERROR) :][:300]!r}")
        elif request.name.startswith("canary"):
            text = _text_of(answer.body)
            if self._canary_bodies.setdefault(request.name, text) != text:
                self._report(request, f"{text!r}, at first {self._canary_bodies[request.name]!r}")

    def _report(self, request: Request, what: str) -> None:
        self.counts["problems"] += 1
        key = f"{request.name}: {what}"
        asked = request.data.partition(b"\r\n\r\n")[2][:MAX_ASKED_BYTES]
        count, first = self._problems.get(key, (0, asked))
        if count or len(self._problems) < MAX_PROBLEMS:
            self._problems[key] = (count + 1, first)


async def find_kinds(port: int, model: str, skipped: Collection[str] = ()) -> tuple[tuple[Kind, ...], list[str]]:
    """The kinds that are wanted and that the server knows, and the names of others that it refuses.

    Each optional one is asked once.
    """
    found, missing = [], []
    rng = random.Random(0)
    for kind in KINDS:
        if kind.name in skipped:
            continue
        if kind.is_optional:
            data = render("POST", kind.path, kind.body(rng, model))
            answer = await perform(Request(name=kind.name, data=data, manner=Manner.PATIENT), port, rng)
            if answer.status in (400, 404, 501):
                missing.append(kind.name)
                continue
        found.append(kind)
    return tuple(found), missing


def _text_of(body: bytes) -> bytes:
    """The part of a completion that may not change: ids and times do."""
    start = body.find(b'"choices"')
    return body[start : body.find(b'"usage"', start)]
