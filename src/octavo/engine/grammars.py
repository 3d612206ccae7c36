"""Grammars of constrained requests: compiled beside the steps, there when their requests start.

Owns: which grammars are compiled when, what waits for them, how long they stay.
Does not own: how they are compiled (grammar/), when a request starts (the scheduler), matchers (the runner).
Invariants: no step waits for a compiler, and no request for another's grammar; a grammar stays while a request that
uses it lives; at most `max_held` requests hold one before they start, however many wait. What goes wrong with a grammar
ends its own requests. Threads: `LazyBackend`, `find` and `prepare` of `GrammarDesk` from any; the rest from the
scheduler's.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from octavo.base.clock import Clock
from octavo.base.errors import GrammarError, InvariantError, OverloadedError, ValidationError
from octavo.base.log import get_logger
from octavo.core.policy import NeverReadyError, Readiness
from octavo.core.request import Request
from octavo.grammar.interface import CompiledGrammar, GrammarBackend
from octavo.proto.failure import Failure, internal_failure
from octavo.proto.stats import GrammarStats
from octavo.proto.structured import GrammarSpec, PreparedGrammar

logger = get_logger(__name__)

COMPILE_TIMEOUT_S: Final = 30.0
"""From the moment a request's grammar is asked for; the first one of an engine also waits for the back end."""


class BackendParts(NamedTuple):
    """A back end and what its masks say of ends."""

    backend: GrammarBackend
    end_token_ids: Collection[int]


class LazyBackend:
    """A GrammarBackend that is made when it is first needed: it costs time and memory that most engines never need."""

    def __init__(self, make: Callable[[], BackendParts]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._parts: BackendParts | None = None

    @property
    def parts(self) -> BackendParts:
        """Made now, if it was not before. Raises what `make` raises; the next call tries again."""
        with self._lock:
            if self._parts is None:
                self._parts = self._make()
            return self._parts

    @property
    def is_made(self) -> bool:
        """True: nothing is left to make."""
        return self._parts is not None

    def prepare(self, spec: GrammarSpec) -> PreparedGrammar:
        """See GrammarBackend.prepare."""
        return self.parts.backend.prepare(spec)

    def compile(self, grammar: PreparedGrammar) -> CompiledGrammar:
        """See GrammarBackend.compile."""
        return self.parts.backend.compile(grammar)


class GrammarCompiler(Protocol):
    """Compiles on threads of its own; equal grammars are compiled once."""

    def submit(self, grammar: PreparedGrammar) -> Future[CompiledGrammar]:
        """Never waits."""
        ...

    def stats(self) -> GrammarStats:
        """What is kept."""
        ...

    def close(self) -> None:
        """Take no more work."""
        ...


@dataclass(slots=True)
class _Order:
    """A request's grammar, on its way or there."""

    grammar: PreparedGrammar
    future: Future[CompiledGrammar]
    asked_s: float
    is_held: bool = True
    """It counts towards `max_held`: its request has not started."""


class GrammarService(Protocol):
    """What the loop tells of requests, and asks. See GrammarDesk."""

    def wait(self, timeout_s: float) -> None: ...
    def note_started(self, request_ids: Iterable[str]) -> None: ...
    def let_go(self, request_ids: Iterable[str]) -> None: ...
    @property
    def is_prepared(self) -> bool: ...
    def prepare(self) -> None: ...
    def stats(self) -> GrammarStats: ...
    def close(self) -> None: ...


class NoGrammars:
    """The service of an engine without grammars: nobody waits for one."""

    is_prepared = True

    def wait(self, timeout_s: float) -> None:
        """There is nothing to wait for."""

    def note_started(self, request_ids: Iterable[str]) -> None:
        """None of them has one."""

    def let_go(self, request_ids: Iterable[str]) -> None:
        """None of them has one."""

    def prepare(self) -> None:
        """There is nothing to make."""

    def stats(self) -> GrammarStats:
        """None is kept."""
        return GrammarStats()

    def close(self) -> None:
        """Nothing is open."""


class GrammarDesk:
    """Where the scheduler asks whether a request's grammar is there, and the runner fetches it."""

    def __init__(
        self,
        backend: LazyBackend,
        compiler: GrammarCompiler,
        clock: Clock,
        *,
        max_held: int,
        on_ready: Callable[[], None] | None = None,
        timeout_s: float = COMPILE_TIMEOUT_S,
    ) -> None:
        """on_ready: called from a compiling thread whenever a grammar came, or failed."""
        self._backend = backend
        self._compiler = compiler
        self._clock = clock
        self._max_held = max_held
        self._on_ready = on_ready
        self._timeout_s = timeout_s
        self._orders: dict[str, _Order] = {}
        self._num_held = 0
        self._ready: dict[PreparedGrammar, CompiledGrammar] = {}
        self._num_users: Counter[PreparedGrammar] = Counter()
        self._has_news = threading.Event()

    # ---- for the scheduler ------------------------------------------------------------------------------------------

    def readiness(self, request: Request) -> Readiness:
        """A ReadinessCheck: orders the grammar of a request when it is first asked about it.

        Raises NeverReadyError when it cannot be compiled or takes too long.
        """
        wanted = request.client.sampling.prepared_grammar
        if wanted is None:
            return Readiness.READY
        order = self._orders.get(request.request_id)
        if order is None:
            if self._num_held >= self._max_held:
                return Readiness.NOT_YET
            order = self._place_order(request.request_id, wanted)
        if order.future.done():
            return self._deliver(order)
        if self._clock.now_s() - order.asked_s > self._timeout_s:
            text = f"the grammar of this request was not compiled within {self._timeout_s:g} s"
            raise NeverReadyError(Failure("limit", text))
        return Readiness.NOT_YET

    def _place_order(self, request_id: str, grammar: PreparedGrammar) -> _Order:
        future = self._compiler.submit(grammar)
        order = self._orders[request_id] = _Order(grammar, future, self._clock.now_s())
        self._num_held += 1
        self._num_users[grammar] += 1
        future.add_done_callback(self._note_done)
        return order

    def _deliver(self, order: _Order) -> Readiness:
        error = order.future.exception()
        if error is not None:
            if isinstance(error, GrammarError | ValidationError):
                raise NeverReadyError(Failure("request", str(error)))
            if isinstance(error, OverloadedError):
                raise NeverReadyError(Failure("limit", str(error)))
            logger.error("a grammar could not be compiled", exc_info=error)
            raise NeverReadyError(internal_failure(error))
        self._ready[order.grammar] = order.future.result()
        return Readiness.READY

    def _note_done(self, _: Future[CompiledGrammar]) -> None:
        self._has_news.set()
        if self._on_ready is not None:
            self._on_ready()

    def note_started(self, request_ids: Iterable[str]) -> None:
        """These requests run: others may have their grammars made. Costs nothing while no request has asked for one."""
        if self.is_idle:
            return
        for request_id in request_ids:
            order = self._orders.get(request_id)
            if order is not None and order.is_held:
                order.is_held = False
                self._num_held -= 1

    def let_go(self, request_ids: Iterable[str]) -> None:
        """These requests have ended. Unknown ids are ignored. Costs nothing while no request has asked for one."""
        if self.is_idle:
            return
        for request_id in request_ids:
            order = self._orders.pop(request_id, None)
            if order is None:
                continue
            order.future.cancel()
            self._num_held -= order.is_held
            self._num_users[order.grammar] -= 1
            if not self._num_users[order.grammar]:
                del self._num_users[order.grammar]
                self._ready.pop(order.grammar, None)

    @property
    def is_idle(self) -> bool:
        """No living request has asked for a grammar."""
        return not self._orders

    def wait(self, timeout_s: float) -> None:
        """Until a grammar came or failed since the last call, or the time is up. At once if nobody asked for one."""
        if self.is_idle:
            return
        self._has_news.wait(timeout_s)
        self._has_news.clear()

    @property
    def is_prepared(self) -> bool:
        """True: the back end is there."""
        return self._backend.is_made

    def prepare(self) -> None:
        """Make the back end, if it is not there. From any thread. Raises what making it raises."""
        self._backend.parts  # noqa: B018

    def stats(self) -> GrammarStats:
        """Of the grammars kept for requests to come."""
        return self._compiler.stats()

    def close(self) -> None:
        """Compile nothing more."""
        self._compiler.close()

    # ---- for the runner ---------------------------------------------------------------------------------------------

    @property
    def end_token_ids(self) -> Collection[int]:
        """See runner.constraints.GrammarSource."""
        return self._backend.parts.end_token_ids

    def find(self, grammar: PreparedGrammar) -> CompiledGrammar:
        """See runner.constraints.GrammarSource."""
        compiled = self._ready.get(grammar)
        if compiled is None:
            raise InvariantError("the grammar of this request is gone: the request has ended")
        return compiled
