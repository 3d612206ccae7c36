"""Small schedulers and requests for tests, from integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from fakes.hash_model import HashModel, LoneRun, lone_run
from fakes.step_driver import StepDriver

from octavo.core.budget import SchedulerLimits
from octavo.core.kv.manager import KvManager
from octavo.core.policy import FcfsPolicy, ReadinessCheck, SchedulingPolicy, always_ready
from octavo.core.scheduler import Scheduler
from octavo.proto.kv import KvGroup
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult
from octavo.proto.sampling import SamplingParams

FULL = (KvGroup(kind="full", layers=(0,)),)


def hybrid(window: int, *, num_windows: int = 1) -> tuple[KvGroup, ...]:
    """One full group and some of a sliding window."""
    windows = [KvGroup(kind="sliding_window", layers=(1 + idx,), window=window) for idx in range(num_windows)]
    return (*FULL, *windows)


def request(
    request_id: str = "r",
    prompt: int | Sequence[int] = 5,
    max_tokens: int = 4,
    *,
    sampling: dict[str, Any] | None = None,
    **fields: Any,
) -> NewRequest:
    """A request; an integer prompt means so many tokens that no other request id has."""
    if isinstance(prompt, int):
        prompt = [hash((*request_id.encode(), idx)) % 1000 for idx in range(prompt)]
    params = SamplingParams(**({"max_tokens": max_tokens} | (sampling or {})))
    defaults = {"seed": 0, "max_tokens": max_tokens}
    return NewRequest(request_id=request_id, prompt_token_ids=list(prompt), sampling=params, **(defaults | fields))


@dataclass
class World:
    """A scheduler, its KV manager, the hash model, and what drives them."""

    groups: tuple[KvGroup, ...]
    block_size: int
    num_blocks: int
    limits: SchedulerLimits
    kv: KvManager
    scheduler: Scheduler
    model: HashModel
    driver: StepDriver
    salts: dict[str, str | None]

    def add(self, new: NewRequest) -> NewRequest:
        self.salts[new.request_id] = new.cache_salt
        self.driver.add(new)
        return new

    def lone(self, new: NewRequest) -> LoneRun:
        return lone_run(new, self.groups, self.limits.max_model_len)

    def text(self, request_id: str) -> list[int]:
        return self.driver.outcomes[request_id].token_ids

    def reason(self, request_id: str) -> str | None:
        return self.driver.outcomes[request_id].finish_reason

    def check_lone(self, *requests: NewRequest) -> None:
        """Every one of these has ended with the text of its lone run."""
        for new in requests:
            assert self.text(new.request_id) == self.lone(new).token_ids, new.request_id

    def check_empty(self) -> None:
        """Nothing is left behind: no request, no row, no block, no frame."""
        assert not self.scheduler.has_work
        assert self.scheduler.num_running == self.scheduler.num_waiting == 0
        assert self.scheduler.stats().kv_usage == 0.0
        self.scheduler.check_integrity()
        assert self.scheduler.reset_prefix_cache()


def make_world(
    *,
    num_blocks: int = 33,
    block_size: int = 4,
    groups: tuple[KvGroup, ...] = FULL,
    policy: SchedulingPolicy | None = None,
    is_ready: ReadinessCheck = always_ready,
    enable_prefix_caching: bool = True,
    **limits: Any,
) -> World:
    """Everything put together; `limits` are fields of SchedulerLimits."""
    defaults = {"max_num_seqs": 4, "max_num_batched_tokens": 16, "max_model_len": 64}
    scheduler_limits = SchedulerLimits(**(defaults | limits))
    kv = KvManager(
        groups,
        num_blocks=num_blocks,
        block_size=block_size,
        hash_key=b"test",
        enable_prefix_caching=enable_prefix_caching,
    )
    scheduler = Scheduler(scheduler_limits, kv, policy or FcfsPolicy(), is_ready=is_ready)
    salts: dict[str, str | None] = {}
    model = HashModel(groups, block_size=block_size, salt_of=salts.get)
    driver = StepDriver(scheduler, model, scheduler_limits)
    return World(groups, block_size, num_blocks, scheduler_limits, kv, scheduler, model, driver, salts)


def end_of(world: World, request_id: str = "r") -> RequestDelta:
    """Its last delta."""
    end = world.driver.outcomes[request_id].end
    assert end is not None
    return end


def next_result(world: World, **changes: Any) -> StepResult:
    """Plan and execute a step; its result, changed."""
    plan = world.scheduler.schedule(0.0)
    assert plan is not None
    return msgspec.structs.replace(world.model.execute(plan), **changes)
