"""How long a grammar that is compiled keeps a step waiting: `python -m octavo.bench.compile_delay [MODEL]` (Linux).

Owns: the measurement, its grammars and report.   Does not own: compiling (grammar/), threads of an engine.
One request decodes while another thread compiles. What counts is the time in which none of the threads of the step
either ran or waited for a processor: the step waited for the interpreter's lock. Who else uses the machine can make it
longer, by keeping the thread that has the lock from running, never shorter: of several rounds the least counts. It is
short by up to 1 ms, where threads of the step overlap. Two lines are for comparison: steps beside which nothing is
compiled, and beside a thread that computes in Python, which shows what would be seen.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from octavo.base.errors import OctavoError
from octavo.base.interpreter import share_finely
from octavo.config.load import load_config
from octavo.config.schema import EngineConfig
from octavo.engine.build import Engine, build_engine
from octavo.engine.grammars import LazyBackend
from octavo.engine.input.front_parts import FrontParts, load_front_parts, make_grammar_backend, open_model
from octavo.engine.input.prompts import Prompt
from octavo.proto.sampling import RequestOutputKind, SamplingParams
from octavo.proto.structured import StructuredOutputsParams

TARGET_S = 0.005
NOTHING, PYTHON = "nothing", "a loop in Python"
NUM_ROUNDS = 7
NUM_FREE_STEPS, NUM_WARMUP_STEPS = 100, 20


def nested(depth: int) -> dict[str, Any]:
    """Two ways to go on at each level."""
    if depth == 0:
        return {"type": "string", "pattern": "(a|aa){1,60}b?"}
    ways = [
        {"type": "object", "properties": {"k": {"const": name}, "v": nested(depth - 1)}, "required": ["k", "v"]}
        for name in ("left", "right")
    ]
    return {"oneOf": ways}


def _wide(num_properties: int) -> dict[str, Any]:
    names = [f"name_{number}" for number in range(num_properties)]
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": names}


def _tools(num_tools: int) -> dict[str, Any]:
    tags = [
        {
            "begin": f'<tool_call>{{"name": "f{number}", "arguments": ',
            "content": {"type": "json_schema", "json_schema": _wide(6)},
            "end": "}</tool_call>",
        }
        for number in range(num_tools)
    ]
    form = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}
    return {"type": "structural_tag", "format": form}


def grammars() -> dict[str, StructuredOutputsParams]:
    """Name -> constraint, all of them taken; a few usual ones, and the most expensive."""
    rules = [f'r{number} ::= "b{number}" [a-z]+' for number in range(400)]
    root = "root ::= " + " | ".join(f"r{number}" for number in range(400))
    return {
        "5 fields": StructuredOutputsParams(json=_wide(5)),
        "1900 fields": StructuredOutputsParams(json=_wide(1900)),
        "5000 schemas": StructuredOutputsParams(json={"prefixItems": [{"prefixItems": [{"type": "null"}] * 50}] * 100}),
        "128 ends of a tree": StructuredOutputsParams(json=nested(7)),
        "constants of 20 KB": StructuredOutputsParams(json={"enum": ["x" * 19_000 + str(n) for n in range(6)]}),
        "expression": StructuredOutputsParams(regex="(a|aa)*c"),
        "counted 8000 times": StructuredOutputsParams(regex="((a{1,20}){1,20}){1,20}"),
        "steps of 9901": StructuredOutputsParams(json={"type": "integer", "multipleOf": 9901}),
        "4000 choices": StructuredOutputsParams(choice=[f"choice {number} {'y' * 15}" for number in range(4000)]),
        "400 rules": StructuredOutputsParams(grammar="\n".join([root, *rules])),
        "128 tools": StructuredOutputsParams(structural_tag=_tools(128)),
    }


@dataclass(slots=True)
class Delays:
    """Of the steps beside the compilations of one grammar."""

    name: str
    cpu_s: float = float("inf")
    longest_s: list[float] = field(default_factory=list)
    """Of each round."""

    def __str__(self) -> str:
        return (
            f"{self.name:<20} {1e3 * self.cpu_s:6.1f} ms of processor time; longest delay of a step"
            f"{1e3 * min(self.longest_s):7.2f} ms (median of {len(self.longest_s)} rounds "
            f"{1e3 * statistics.median(self.longest_s):6.2f}, worst {1e3 * max(self.longest_s):6.2f})"
        )


def _busy_s(thread_id: str) -> float:
    """Of one thread; 0 for one that is gone."""
    try:
        run, wait, _ = Path(f"/proc/self/task/{thread_id}/schedstat").read_text().split()
    except OSError:
        return 0.0
    return (int(run) + int(wait)) * 1e-9


class OtherThread(threading.Thread):
    """Does one thing, then ends."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.cpu_s = 0.0
        self.error: OctavoError | None = None

    def run(self) -> None:
        started_s = time.thread_time()
        try:
            self._work()
        except OctavoError as error:
            self.error = error
        self.cpu_s = time.thread_time() - started_s


def compute_in_python() -> int:
    """Holds the interpreter's lock for as long as it is left with it; some 100 ms."""
    return sum(number % 7 for number in range(2_000_000))


class StepWatch:
    """Runs steps of an engine and says how long each waited for the interpreter."""

    def __init__(self, engine: Engine) -> None:
        self._front_end = engine.front_end
        params = SamplingParams(ignore_eos=True, max_tokens=None, output_kind=RequestOutputKind.FINAL_ONLY)
        prompt = Prompt(token_ids=[5, 6, 7])
        self._front_end.submit(engine.inputs.prepare(prompt, params, request_id="0", arrival_s=self._front_end.now_s()))

    def step(self, other: OtherThread | None = None) -> float:
        """Seconds of one step in which nothing ran that it needs."""
        other_id = None if other is None else other.native_id
        before = self._read(other_id)
        started_s = time.perf_counter()
        self._front_end.step()
        wall_s = time.perf_counter() - started_s
        return max(0.0, wall_s - (self._read(other_id) - before))

    def _read(self, other_id: int | None) -> float:
        """Seconds that the threads of the step ran, or waited for a processor, so far."""
        return sum(_busy_s(name) for name in os.listdir("/proc/self/task") if name != str(other_id))


def measure(engine: Engine, backend: LazyBackend) -> Iterator[Delays]:
    """One by one; the first two are those for comparison. Raises what compiling raises."""
    watch = StepWatch(engine)
    for _ in range(NUM_WARMUP_STEPS):
        watch.step()
    yield Delays(NOTHING, 0.0, [watch.step() for _ in range(NUM_FREE_STEPS)])
    yield _measure_beside(watch, PYTHON, compute_in_python)
    for name, params in grammars().items():
        yield _measure_beside(watch, name, partial(backend.compile, backend.prepare(params.spec)))


def _measure_beside(watch: StepWatch, name: str, work: Callable[[], object]) -> Delays:
    delays = Delays(name)
    for _ in range(NUM_ROUNDS):
        thread = OtherThread(work)
        thread.start()
        longest_s = watch.step(thread)
        while thread.is_alive():
            longest_s = max(longest_s, watch.step(thread))
        if thread.error is not None:
            raise thread.error
        delays.longest_s.append(longest_s)
        delays.cpu_s = min(delays.cpu_s, thread.cpu_s)
    return delays


def _read_parts(config: EngineConfig) -> FrontParts:
    with open_model(config) as checkpoint:
        return load_front_parts(config, checkpoint)


def main(model: str) -> int:
    """Print a line per grammar. Returns 1 when one of them keeps steps waiting for longer than TARGET_S."""
    share_finely()
    config = load_config({"model": model, "max_num_seqs": 4, "num_threads": 1, "max_concurrent_steps": 1})
    engine, backend = build_engine(config), make_grammar_backend(lambda: _read_parts(config))
    too_long = []
    for delays in measure(engine, backend):
        print(delays, flush=True)
        if delays.name != PYTHON and min(delays.longest_s) > TARGET_S:
            too_long.append(delays.name)
    print(f"longer than {1e3 * TARGET_S:g} ms: {', '.join(too_long) or 'none'}")
    return int(bool(too_long))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-instruct"))
