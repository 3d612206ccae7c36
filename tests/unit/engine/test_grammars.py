"""The desk: grammars are ordered when their requests are asked about, and stay as long as those live."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from fakes.scheduling import make_world, request
from fakes.toy_grammar import ToyGrammars, any_of, prepared

from octavo.base.clock import ManualClock
from octavo.base.errors import GrammarError, InvariantError, LoadError, OverloadedError, ValidationError
from octavo.core.kv.sequence import KvSequence
from octavo.core.planning import MAX_UNREADY
from octavo.core.policy import NeverReadyError, Readiness
from octavo.core.request import Request
from octavo.engine.grammars import BackendParts, GrammarDesk, LazyBackend
from octavo.grammar.interface import CompiledGrammar
from octavo.proto.failure import Failure
from octavo.proto.stats import GrammarStats
from octavo.proto.structured import PreparedGrammar

BACKEND = ToyGrammars([1])


class ManualCompiler:
    """Compiles when the test says so."""

    def __init__(self) -> None:
        self.ordered: list[tuple[PreparedGrammar, Future[CompiledGrammar]]] = []
        self.is_closed = False

    def submit(self, grammar: PreparedGrammar) -> Future[CompiledGrammar]:
        future: Future[CompiledGrammar] = Future()
        self.ordered.append((grammar, future))
        return future

    def finish(self, idx: int = 0, error: Exception | None = None) -> None:
        grammar, future = self.ordered[idx]
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(BACKEND.compile(grammar))

    def stats(self) -> GrammarStats:
        return GrammarStats(num_queries=len(self.ordered))

    def close(self) -> None:
        self.is_closed = True


class Desk:
    """A desk and what is around it."""

    def __init__(self, **options: Any) -> None:
        self.compiler = ManualCompiler()
        self.clock = ManualClock()
        self.num_calls = 0
        backend = LazyBackend(lambda: BackendParts(BACKEND, BACKEND.end_token_ids))
        defaults: dict[str, Any] = {"max_held": 4, "on_ready": self._count}
        self.desk = GrammarDesk(backend, self.compiler, self.clock, **(defaults | options))

    def _count(self) -> None:
        self.num_calls += 1

    def ask(self, request_id: str, token_id: int = 5) -> Readiness:
        return self.desk.readiness(state(request_id, token_id))


def constrained(request_id: str, token_id: int = 5, **fields: Any):
    return request(request_id, sampling={"prepared_grammar": prepared(any_of(token_id).spec)}, **fields)


def state(request_id: str, token_id: int = 5) -> Request:
    return Request(constrained(request_id, token_id), 0, KvSequence(), max_model_len=64)


def test_a_request_without_a_constraint_is_ready() -> None:
    one = Desk()
    assert one.desk.readiness(Request(request(), 0, KvSequence(), max_model_len=64)) is Readiness.READY
    assert one.desk.is_idle


def test_a_grammar_is_ordered_once_and_its_request_waits_for_it() -> None:
    one = Desk()
    assert [one.ask("a"), one.ask("a")] == [Readiness.NOT_YET] * 2
    assert len(one.compiler.ordered) == 1
    one.compiler.finish()
    assert one.num_calls == 1
    assert one.ask("a") is Readiness.READY
    assert one.desk.find(prepared(any_of(5).spec)).start().is_accepting


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (GrammarError("is too large"), Failure("request", "is too large")),
        (OverloadedError("was not compiled in time"), Failure("limit", "was not compiled in time")),
        (LoadError("/a/path: is gone"), Failure("internal", "LoadError: /a/path: is gone")),
        (RuntimeError("boom"), Failure("internal", "RuntimeError: boom")),
    ],
)
def test_a_compilation_that_fails_is_the_end_of_its_request(error: Exception, failure: Failure) -> None:
    one = Desk()
    one.ask("a")
    one.compiler.finish(error=error)
    with pytest.raises(NeverReadyError) as never:
        one.ask("a")
    assert never.value.failure == failure


def test_a_grammar_that_does_not_come_in_time_is_the_end_of_its_request() -> None:
    one = Desk(timeout_s=2.0)
    one.ask("a")
    one.clock.advance(1.5)
    assert one.ask("a") is Readiness.NOT_YET
    one.clock.advance(1.0)
    with pytest.raises(NeverReadyError, match="within 2 s"):
        one.ask("a")


def test_few_grammars_are_made_ahead_of_requests_that_run() -> None:
    one = Desk(max_held=2)
    for idx in range(4):
        one.ask(f"r{idx}", idx)
    assert len(one.compiler.ordered) == 2
    one.desk.note_started(["r0", "r0", "nobody"])
    one.ask("r2", 2)
    one.ask("r3", 3)
    assert len(one.compiler.ordered) == 3
    one.desk.let_go(["r1"])
    one.ask("r3", 3)
    assert len(one.compiler.ordered) == 4


def test_a_grammar_stays_while_one_of_its_requests_lives() -> None:
    one = Desk()
    for idx, name in enumerate(("a", "b")):
        one.ask(name)
        one.compiler.finish(idx)
        one.ask(name)
    one.desk.let_go(["a"])
    assert one.desk.find(prepared(any_of(5).spec))
    one.desk.let_go(["b", "b"])
    assert one.desk.is_idle
    with pytest.raises(InvariantError, match="gone"):
        one.desk.find(prepared(any_of(5).spec))


def test_what_nobody_waits_for_is_cancelled() -> None:
    one = Desk()
    one.ask("a")
    one.desk.let_go(["a"])
    assert one.compiler.ordered[0][1].cancelled()


def test_waiting_ends_when_a_grammar_comes() -> None:
    one = Desk()
    one.ask("a")
    one.compiler.finish()
    one.desk.wait(60.0)


def test_the_back_end_is_made_once_and_only_when_it_is_needed() -> None:
    made: list[int] = []

    def make() -> BackendParts:
        made.append(1)
        return BackendParts(BACKEND, BACKEND.end_token_ids)

    lazy = LazyBackend(make)
    assert not made
    lazy.compile(lazy.prepare(any_of(6).spec))
    assert lazy.is_made
    assert made == [1]
    with pytest.raises(ValidationError):
        lazy.prepare(any_of("broken").spec)


# ---- with a scheduler -----------------------------------------------------------------------------------------------


def test_a_request_that_waits_for_its_grammar_holds_nobody() -> None:
    one = Desk()
    world = make_world(is_ready=one.desk.readiness)
    world.add(constrained("waits", seed=1))
    free = world.add(request("free", 7, 5))
    for _ in range(12):
        world.driver.step()
    world.check_lone(free)
    assert world.reason("waits") is None
    one.compiler.finish()
    world.driver.run(max_steps=30)
    assert world.reason("waits") is not None


def test_a_grammar_that_never_comes_ends_its_request_alone() -> None:
    one = Desk()
    world = make_world(is_ready=one.desk.readiness)
    world.add(constrained("lost"))
    free = world.add(request("free", 7, 5))
    world.driver.step()
    one.compiler.finish(error=GrammarError("it is too large"))
    world.driver.run(max_steps=30)
    world.check_lone(free)
    assert world.driver.outcomes["lost"].end.error == Failure("request", "it is too large")
    assert world.scheduler.stats().num_faults == 0


def test_one_round_looks_past_a_bounded_number_of_requests_that_are_not_ready() -> None:
    asked: list[str] = []

    def is_ready(one: Request) -> Readiness:
        asked.append(one.request_id)
        return Readiness.NOT_YET

    world = make_world(is_ready=is_ready)
    for idx in range(MAX_UNREADY + 50):
        world.scheduler.add(request(f"r{idx}"))
    assert world.scheduler.schedule(0.0) is None
    assert len(asked) == MAX_UNREADY
