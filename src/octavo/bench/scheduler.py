"""What planning costs: the scheduler alone, with a runner that answers at once. Run: python -m octavo.bench.scheduler

Measures one admission of many prompts in one step, then steady decoding of `--running` sequences with `--waiting` more
behind them, and prints the medians and the 99th percentiles of schedule() and update() in milliseconds. Prompt lengths
differ by up to a block, so that the sequences do not all begin a new block in the same step.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import dataclass, field

from octavo.core.budget import SchedulerLimits
from octavo.core.kv.manager import KvManager
from octavo.core.policy import make_policy
from octavo.core.scheduler import Scheduler
from octavo.proto.kv import KvGroup
from octavo.proto.plan import StepPlan
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult
from octavo.proto.sampling import SamplingParams

GROUPS = {
    "full": (KvGroup(kind="full", layers=(0,)),),
    "hybrid": (
        KvGroup(kind="full", layers=(0,)),
        *(KvGroup(kind="sliding_window", layers=(1 + idx,), window=512) for idx in range(5)),
    ),
}
BLOCK_SIZE = 32


@dataclass
class Timings:
    """Seconds of each call."""

    schedule_s: list[float] = field(default_factory=list)
    update_s: list[float] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Both calls: median and 99th percentile in ms."""
        parts = []
        for what, values in (("schedule", sorted(self.schedule_s)), ("update", sorted(self.update_s))):
            median, high = values[len(values) // 2], values[int(0.99 * (len(values) - 1))]
            parts.append(f"{what} {1e3 * median:7.3f} / {1e3 * high:7.3f}")
        return f"{name:<24} {'   '.join(parts)}   ms (median / p99)"


def make_scheduler(num_running: int, num_waiting: int, num_prompt: int, groups: str, depth: int) -> Scheduler:
    """A scheduler with room for `num_running` sequences, and requests enough to fill it and the queue."""
    limits = SchedulerLimits(
        max_num_seqs=num_running,
        max_num_batched_tokens=num_running * (num_prompt + BLOCK_SIZE),
        max_model_len=num_prompt + BLOCK_SIZE + 4096,
        max_steps_in_flight=depth,
    )
    num_blocks = 1 + num_running * len(GROUPS[groups]) * (3 + (num_prompt + 1024) // BLOCK_SIZE)
    kv = KvManager(GROUPS[groups], num_blocks=num_blocks, block_size=BLOCK_SIZE, hash_key=b"bench")
    scheduler = Scheduler(limits, kv, make_policy("fcfs"))
    for idx in range(num_running + num_waiting):
        scheduler.add(
            NewRequest(
                request_id=f"r{idx}",
                prompt_token_ids=[(idx * 7919 + at) % 50_000 for at in range(num_prompt + idx % BLOCK_SIZE)],
                sampling=SamplingParams(max_tokens=4096, min_tokens=1),
                max_tokens=4096,
                seed=idx,
                eos_token_ids=(50_001,),
            )
        )
    return scheduler


def answer(plan: StepPlan) -> StepResult:
    """A result that ends nothing."""
    return StepResult(step_id=plan.step_id, epoch=plan.epoch, token_ids=[[7] if s else [] for s in plan.samples])


def step(scheduler: Scheduler, in_flight: list[StepPlan], timings: Timings, depth: int) -> None:
    """Plan one step and, at full depth, take the oldest result."""
    begin = time.perf_counter()
    plan = scheduler.schedule(0.0)
    timings.schedule_s.append(time.perf_counter() - begin)
    if plan is not None:
        in_flight.append(plan)
    if len(in_flight) == depth:
        result = answer(in_flight.pop(0))
        begin = time.perf_counter()
        scheduler.update(result, 0.0)
        timings.update_s.append(time.perf_counter() - begin)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--running", type=int, default=1000, help="sequences that decode")
    parser.add_argument("--waiting", type=int, default=1000, help="requests in the queue behind them")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of each prompt")
    parser.add_argument("--steps", type=int, default=200, help="steps measured")
    args = parser.parse_args()
    for groups in GROUPS:
        for depth in (1, 2):
            scheduler = make_scheduler(args.running, args.waiting, args.prompt, groups, depth)
            in_flight: list[StepPlan] = []
            admission = Timings()
            step(scheduler, in_flight, admission, 1)
            gc.collect()
            gc.freeze()  # what lives long is not to be walked again and again
            steady = Timings()
            for _ in range(args.steps):
                step(scheduler, in_flight, steady, depth)
            stats = scheduler.stats()
            print(f"{groups}, depth {depth}: {stats.num_running} running, {stats.num_waiting} waiting")
            print(admission.line("  admit all in one step"))
            print(steady.line("  decode"))


if __name__ == "__main__":
    main()
