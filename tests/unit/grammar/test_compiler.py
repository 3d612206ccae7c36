import threading
import time
from concurrent.futures import CancelledError

import pytest

from octavo.base.errors import OverloadedError, ValidationError
from octavo.grammar.cache import GrammarCache
from octavo.grammar.compiler import GrammarCompiler
from octavo.proto.structured import PreparedGrammar

WAIT_S = 10


class Grammar:
    num_bytes = 100


class Backend:
    """Compiles when it is let; some texts fail."""

    def __init__(self):
        self.may_go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.compiled = []

    def compile(self, grammar):
        self.begun.release()
        assert self.may_go.wait(WAIT_S)
        self.compiled.append(grammar.text)
        if grammar.text == "bad":
            raise ValidationError("bad regex")
        if grammar.text == "broken":
            raise RuntimeError("a bug")
        return Grammar()


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def compiler(backend, now):
    made = GrammarCompiler(backend, cache=GrammarCache(10_000), num_threads=1, timeout_s=5.0, clock=lambda: now[0])
    yield made
    backend.may_go.set()
    made.close()


def grammar(text):
    return PreparedGrammar(text=text, num_bytes=100)


def threads_of_compilers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("octavo-grammar_")]


def test_submitting_does_not_wait(compiler, backend):
    future = compiler.submit(grammar("a"))
    assert not future.done()
    backend.may_go.set()
    assert isinstance(future.result(WAIT_S), Grammar)


def test_no_thread_is_there_before_the_first_grammar(backend):
    before = len(threads_of_compilers())
    GrammarCompiler(backend, cache=GrammarCache(100))
    assert len(threads_of_compilers()) == before


def test_a_grammar_that_is_known_is_there_at_once(compiler, backend):
    backend.may_go.set()
    first = compiler.submit(grammar("a")).result(WAIT_S)
    again = compiler.submit(grammar("a"))
    assert again.done()
    assert again.result() is first
    assert backend.compiled == ["a"]


def test_those_who_wait_for_the_same_grammar_share_one_compilation(compiler, backend):
    futures = [compiler.submit(grammar("a")) for _ in range(5)]
    backend.may_go.set()
    assert len({id(future.result(WAIT_S)) for future in futures}) == 1
    assert backend.compiled == ["a"]


def test_what_nobody_waits_for_any_more_is_not_compiled(compiler, backend):
    compiler.submit(grammar("busy"))
    assert backend.begun.acquire(timeout=WAIT_S)
    wanted, unwanted = compiler.submit(grammar("wanted")), compiler.submit(grammar("unwanted"))
    shared = [compiler.submit(grammar("shared")) for _ in range(2)]
    assert unwanted.cancel()
    assert shared[0].cancel()
    last = compiler.submit(grammar("last"))
    backend.may_go.set()
    last.result(WAIT_S)
    wanted.result(WAIT_S)
    shared[1].result(WAIT_S)
    assert backend.compiled == ["busy", "wanted", "shared", "last"]
    assert compiler.num_waiting == 0


def test_a_grammar_that_was_dropped_can_be_asked_for_again(compiler, backend):
    compiler.submit(grammar("busy"))
    assert backend.begun.acquire(timeout=WAIT_S)
    compiler.submit(grammar("a")).cancel()
    again = compiler.submit(grammar("a"))
    backend.may_go.set()
    assert again.result(WAIT_S)


def test_a_faulty_grammar_is_the_exception_of_its_future_and_of_no_other(compiler, backend):
    backend.may_go.set()
    bad, broken, good = (compiler.submit(grammar(text)) for text in ("bad", "broken", "good"))
    with pytest.raises(ValidationError, match="bad regex"):
        bad.result(WAIT_S)
    with pytest.raises(RuntimeError):
        broken.result(WAIT_S)
    assert good.result(WAIT_S)
    assert compiler.num_waiting == 0


def test_a_grammar_not_begun_in_time_fails(compiler, backend, now):
    compiler.submit(grammar("busy"))
    assert backend.begun.acquire(timeout=WAIT_S)
    late = compiler.submit(grammar("late"))
    now[0] = 6.0
    backend.may_go.set()
    with pytest.raises(OverloadedError, match="within 5 s"):
        late.result(WAIT_S)
    assert "late" not in backend.compiled


def test_closing_cancels_what_waits(compiler, backend):
    compiler.submit(grammar("busy"))
    assert backend.begun.acquire(timeout=WAIT_S)
    waiting = compiler.submit(grammar("waiting"))
    compiler.close()
    with pytest.raises(CancelledError):
        waiting.result(WAIT_S)
    backend.may_go.set()


def test_threads_sleep_when_there_is_nothing_to_do(compiler, backend):
    before = set(threads_of_compilers())
    backend.may_go.set()
    compiler.submit(grammar("a")).result(WAIT_S)
    (thread,) = set(threads_of_compilers()) - before
    clock = time.pthread_getcpuclockid(thread.ident)
    begin_s = time.clock_gettime(clock)
    time.sleep(0.1)
    assert time.clock_gettime(clock) - begin_s < 0.01
