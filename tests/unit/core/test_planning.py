"""Who gets how many tokens, blocks and rows: seen through the plans of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fakes.scheduling import World, hybrid, make_world, request

from octavo.base.errors import CapacityError, ValidationError
from octavo.core.policy import FcfsPolicy, PriorityPolicy, Readiness
from octavo.core.request import Request


def entering(world: World) -> list[str]:
    """Plan a step: the ids of the requests that enter a row in it."""
    plan = world.driver.plan()
    return [] if plan is None else [sequence.request_id for sequence in plan.new]


def shares(world: World) -> list[int]:
    """Plan a step: tokens of each entry, in order."""
    plan = world.driver.plan()
    return [] if plan is None else plan.num_tokens


def test_a_prompt_longer_than_the_budget_enters_in_chunks() -> None:
    world = make_world(max_num_batched_tokens=8)
    world.add(request(prompt=19))
    world.driver.run()
    assert [plan.num_tokens for plan in world.driver.plans[:4]] == [[8], [8], [3], [1]]
    assert [plan.samples for plan in world.driver.plans[:4]] == [[False], [False], [True], [True]]


def test_running_requests_go_before_waiting_ones() -> None:
    world = make_world(max_num_batched_tokens=8)
    world.add(request("a", prompt=3))
    world.driver.step()
    world.add(request("b", prompt=20))
    assert shares(world) == [1, 7]


def test_what_the_first_leaves_of_the_budget_is_for_the_next() -> None:
    world = make_world(max_num_batched_tokens=8)
    for name, prompt in (("a", 3), ("b", 4), ("c", 5)):
        world.add(request(name, prompt=prompt))
    assert shares(world) == [3, 4, 1]


def test_a_long_prompt_gets_at_most_the_threshold_a_step() -> None:
    world = make_world(max_num_batched_tokens=16, long_prefill_token_threshold=6)
    world.add(request("long", prompt=20))
    world.add(request("short", prompt=3))
    assert shares(world) == [6, 3]


def test_a_long_prompt_that_is_alone_gets_the_whole_budget() -> None:
    world = make_world(max_num_batched_tokens=16, long_prefill_token_threshold=6)
    world.add(request(prompt=20))
    assert shares(world) == [16]


def test_without_chunking_a_prompt_waits_for_a_step_that_holds_all_of_it() -> None:
    world = make_world(enable_chunked_prefill=False, max_num_batched_tokens=20, max_model_len=20, max_bypass=0)
    for name, prompt in (("a", 12), ("b", 10), ("c", 2)):
        world.add(request(name, prompt=prompt))
    assert shares(world) == [12]
    world.driver.collect()
    assert shares(world) == [1, 10, 2]


def test_without_chunking_a_long_prompt_is_not_starved_by_short_ones() -> None:
    world = make_world(
        enable_chunked_prefill=False, max_num_batched_tokens=20, max_model_len=20, max_num_seqs=8, max_bypass=2
    )
    fill(world, ["first", "second"], prompt=2, max_tokens=3)
    world.driver.step()
    world.add(request("long", prompt=19, max_tokens=1))
    for idx in range(20):
        world.add(request(f"short{idx}", prompt=2, max_tokens=3))
    order = [name for _ in range(10) for name in (entering(world), world.driver.collect())[0]]
    assert order[:3] == ["short0", "short1", "long"]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 5])
def test_nothing_is_computed_behind_a_certain_end(depth: int, max_tokens: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    world.add(request(prompt=5, max_tokens=max_tokens))
    world.driver.run()
    assert sum(plan.num_scheduled_tokens for plan in world.driver.plans) == 5 + max_tokens - 1
    assert world.reason("r") == "length"


def test_nothing_is_computed_behind_the_context_length() -> None:
    world = make_world(max_steps_in_flight=3, max_model_len=8)
    world.add(request(prompt=5, max_tokens=50))
    world.driver.run()
    assert len(world.text("r")) == 3
    assert sum(plan.num_scheduled_tokens for plan in world.driver.plans) == 7


def test_no_more_sequences_run_than_there_are_rows() -> None:
    world = make_world(max_num_seqs=2)
    for name in "abc":
        world.add(request(name, prompt=2))
    assert entering(world) == ["a", "b"]
    assert world.scheduler.num_waiting == 1


# Memory.


def fill(world: World, names: Sequence[str], prompt: int, max_tokens: int) -> None:
    for name in names:
        world.add(request(name, prompt=prompt, max_tokens=max_tokens))


def test_blocks_are_taken_from_the_last_in_the_order() -> None:
    world = make_world(num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3)
    fill(world, "abc", prompt=4, max_tokens=13)
    world.driver.run()
    preempted = [s.request_id for plan in world.driver.plans for s in plan.new if len(s.token_ids) > 4]
    assert preempted
    assert "a" not in preempted
    assert preempted[0] == "c"


class FirstVictim(FcfsPolicy):
    """Prefers the oldest of those it may choose from."""

    def victim_idx(self, candidates: Sequence[Request]) -> int:
        return 0


def test_whatever_the_policy_prefers_nobody_ahead_is_a_victim() -> None:
    world = make_world(num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3, policy=FirstVictim())
    fill(world, "abc", prompt=4, max_tokens=13)
    world.driver.run()
    preempted = [s.request_id for plan in world.driver.plans for s in plan.new if len(s.token_ids) > 4]
    assert preempted[0] == "b"
    assert "a" not in preempted


def test_a_request_with_nobody_behind_it_waits_and_keeps_its_blocks() -> None:
    world = make_world(num_blocks=6, max_num_batched_tokens=32)
    fill(world, "ab", prompt=4, max_tokens=13)
    world.driver.run()
    assert world.scheduler.stats().num_preemptions == 1
    world = make_world(num_blocks=6, max_num_batched_tokens=32)
    world.add(request("a", prompt=8, max_tokens=5))
    world.add(request("b", prompt=4, max_tokens=5))
    world.driver.run()
    assert world.scheduler.stats().num_preemptions == 0
    assert [request_id for plan in world.driver.plans for request_id in [s.request_id for s in plan.new]] == ["a", "b"]


def test_a_prompt_is_admitted_only_if_all_of_it_fits_beside_what_is_promised() -> None:
    world = make_world(num_blocks=11, max_num_batched_tokens=4)
    world.add(request("a", prompt=28, max_tokens=1))
    world.driver.step()
    world.add(request("b", prompt=16, max_tokens=1))
    world.driver.run()
    assert world.reason("b") == "length"
    assert world.scheduler.stats().num_preemptions == 0


def world_with_a_big_request_behind() -> World:
    world = make_world(num_blocks=14, max_num_batched_tokens=64)
    world.add(request("small", prompt=4, max_tokens=40))
    world.add(request("big", prompt=32, max_tokens=20))
    return world


def test_nobody_is_admitted_into_the_blocks_of_a_victim_before_it() -> None:
    world = world_with_a_big_request_behind()
    num_steps = 0
    while not world.scheduler.stats().num_preemptions and world.scheduler.has_work:
        world.driver.step()
        num_steps += 1
    world_again = world_with_a_big_request_behind()
    for _ in range(num_steps - 1):
        world_again.driver.step()
    world_again.add(request("late", prompt=1, max_tokens=1))
    assert entering(world_again) == []
    assert world_again.scheduler.stats().num_preemptions == 1


def test_a_bounded_number_of_small_requests_passes_a_big_one() -> None:
    world = make_world(num_blocks=9, max_num_seqs=8, max_num_batched_tokens=32, max_bypass=2)
    world.add(request("first", prompt=8, max_tokens=8))
    world.driver.step()
    world.add(request("big", prompt=24, max_tokens=2))
    for idx in range(6):
        world.add(request(f"small{idx}", prompt=2, max_tokens=1))
    order = []
    while world.scheduler.has_work:
        order += entering(world)
        world.driver.collect()
    assert order == ["small0", "small1", "big", *[f"small{idx}" for idx in range(2, 6)]]


def test_a_request_that_is_not_ready_holds_nobody_up() -> None:
    ready: set[str] = set()

    def is_ready(one: Request) -> Readiness:
        if one.request_id.startswith("grammar") and one.request_id not in ready:
            return Readiness.NOT_YET
        return Readiness.READY

    world = make_world(is_ready=is_ready, max_bypass=0)
    world.add(request("grammar", prompt=3))
    fill(world, "ab", prompt=3, max_tokens=2)
    assert entering(world) == ["a", "b"]
    world.driver.collect()
    assert entering(world) == []
    ready.add("grammar")
    world.driver.collect()
    assert entering(world) == ["grammar"]
    world.driver.run()


# The border.


@pytest.mark.parametrize("groups", [None, hybrid(6)])
def test_what_can_never_fit_is_refused_and_what_just_fits_is_served(groups: object) -> None:
    options = {} if groups is None else {"groups": groups}
    served = refused = 0
    for length in range(8, 40):
        world = make_world(num_blocks=9, max_num_batched_tokens=5, **options)
        try:
            new = world.add(request(prompt=length - 4, max_tokens=4))
        except CapacityError:
            refused += 1
            continue
        assert refused == 0, "a longer request was accepted after a shorter one was refused"
        world.driver.run()
        world.check_lone(new)
        served += 1
    assert served
    assert refused


@pytest.mark.parametrize(
    ("new", "parameter"),
    [
        (request(prompt=[]), "prompt_token_ids"),
        (request(prompt=64), "prompt_token_ids"),
        (request("taken"), "request_id"),
        (request(max_tokens=0, sampling={"max_tokens": 1}), "max_tokens"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_name(new: object, parameter: str) -> None:
    world = make_world()
    world.add(request("taken"))
    with pytest.raises(ValidationError) as caught:
        world.scheduler.add(new)  # type: ignore[arg-type]
    assert caught.value.parameter == parameter
    assert world.scheduler.num_waiting == 1


# Priorities.


def test_an_important_request_is_admitted_first() -> None:
    world = make_world(policy=PriorityPolicy(), max_num_seqs=1)
    for name, priority in (("low", 5), ("high", 0), ("middle", 3)):
        world.add(request(name, prompt=2, max_tokens=1, priority=priority))
    order = []
    while world.scheduler.has_work:
        order += entering(world)
        world.driver.collect()
    assert order == ["high", "middle", "low"]


def test_the_least_important_request_is_preempted_and_resumes() -> None:
    world = make_world(policy=PriorityPolicy(), num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3)
    requests = [
        world.add(request(name, prompt=4, max_tokens=13, priority=priority))
        for name, priority in (("low", 2), ("high", 0), ("middle", 1))
    ]
    world.driver.run()
    resumed = [s.request_id for plan in world.driver.plans for s in plan.new if len(s.token_ids) > 4]
    assert resumed[0] == "low"
    assert "high" not in resumed
    world.check_lone(*requests)


def test_an_unimportant_request_is_not_starved_by_a_stream_of_important_ones() -> None:
    world = make_world(policy=PriorityPolicy(ageing_s=10.0), max_num_seqs=1)
    world.add(request("low", prompt=2, max_tokens=1, priority=1))
    for now in range(40):
        world.driver.now_s = float(now)
        world.add(request(f"high{now}", prompt=2, max_tokens=2, priority=0, arrival_s=float(now)))
        world.driver.step()
    assert world.reason("low") == "length"


def test_a_preempted_request_resumes_before_later_ones_of_its_priority() -> None:
    world = make_world(policy=PriorityPolicy(), num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3, max_bypass=0)
    fill(world, "abcd", prompt=4, max_tokens=13)
    order = []
    while world.scheduler.has_work:
        order += entering(world)
        world.driver.collect()
    first_resumed = order[3]
    assert first_resumed == "c"
    assert order.index("d") > 3
