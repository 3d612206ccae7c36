"""Failures that overlapped scheduling has had elsewhere, each as a test: several steps planned before any returns.

They come from the histories of other engines: counters of tokens in flight that underflow after a preemption, samples
that are lost or land on another request, blocks reused too early.
"""

from __future__ import annotations

import random

import msgspec
import pytest
from fakes.scheduling import World, hybrid, make_world, request

from octavo.proto.failure import Failure
from octavo.proto.request import NewRequest

NOT_COMPUTED = Failure("numeric", "not computed")

DEPTHS = [2, 3]


def fill_the_queue(world: World) -> None:
    while world.driver.num_in_flight < world.limits.max_steps_in_flight and world.driver.plan() is not None:
        pass


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_sequence_advances_while_its_last_token_is_unknown(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    world.add(request(prompt=5, max_tokens=9))
    fill_the_queue(world)
    assert [plan.starts for plan in world.driver.plans] == [[0], *[[5 + idx] for idx in range(depth - 1)]]
    assert all(plan.samples == [True] for plan in world.driver.plans)


@pytest.mark.parametrize("depth", DEPTHS)
def test_samples_behind_an_end_found_late_are_dropped(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    eos = world.lone(request(max_tokens=9)).token_ids[1]
    new = world.add(request(max_tokens=9, eos_token_ids=(eos,)))
    world.driver.run()
    world.check_lone(new)
    assert len(world.driver.plans) > len(world.text("r"))
    world.check_empty()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_late_sample_never_lands_on_the_next_request_of_its_row(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth, max_num_seqs=1)
    eos = world.lone(request("a", max_tokens=9)).token_ids[0]
    first = world.add(request("a", max_tokens=9, eos_token_ids=(eos,)))
    second = world.add(request("b", max_tokens=9))
    world.driver.run()
    world.check_lone(first, second)


@pytest.mark.parametrize("depth", DEPTHS)
def test_samples_in_flight_of_a_preempted_request_are_delivered_once(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth, num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3)
    requests = [world.add(request(name, prompt=4, max_tokens=13)) for name in "abc"]
    num_in_flight_at_preemption = 0
    while world.scheduler.has_work:
        before = world.scheduler.stats().num_preemptions
        fill_the_queue(world)
        if world.scheduler.stats().num_preemptions > before:
            num_in_flight_at_preemption = max(num_in_flight_at_preemption, world.driver.num_in_flight)
        world.driver.collect()
    assert num_in_flight_at_preemption > 1
    world.check_lone(*requests)
    world.check_empty()


THREE = [request(name, prompt=length, max_tokens=13) for name, length in (("a", 4), ("b", 4), ("c", 6))]
"""The last begins its blocks at other steps than the others, so that it is not waiting for one when it is preempted."""


def preempt_with_samples_in_flight() -> World:
    """A world of three requests in which "c" has just been preempted while samples of it are in flight."""
    world = make_world(max_steps_in_flight=3, num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3)
    for new in THREE:
        world.add(new)
    while not world.scheduler.stats().num_preemptions and world.scheduler.has_work:
        if world.driver.num_in_flight == 3:
            world.driver.collect()
        world.driver.plan()
    assert any(world.driver.plans[0].new[2].row in plan.rows for plan in world.driver.plans_in_flight)
    return world


def test_a_preempted_request_is_not_resumed_before_its_samples_have_come() -> None:
    world = preempt_with_samples_in_flight()
    new = THREE[2]
    world.driver.abort("a", "b")
    row = world.driver.plans[0].new[2].row
    while any(row in plan.rows for plan in world.driver.plans_in_flight):
        assert world.driver.plan() is None
        world.driver.collect()
    plan = world.driver.plan()
    assert plan is not None
    assert plan.new[0].token_ids == new.prompt_token_ids + world.text("c")
    world.driver.run()
    world.check_lone(new)


def test_after_a_reset_nothing_in_flight_is_used_any_more() -> None:
    world = preempt_with_samples_in_flight()
    assert world.scheduler.reset_prefix_cache(reset_running=True)
    while world.driver.num_in_flight:
        assert world.driver.collect() == []
    world.driver.run()
    world.check_lone(*THREE)


def test_a_preempted_request_may_end_by_a_sample_in_flight() -> None:
    for max_tokens in range(8, 14):
        world = make_world(max_steps_in_flight=3, num_blocks=9, max_num_batched_tokens=32, max_num_seqs=3)
        requests = [
            world.add(request(name, prompt=4, max_tokens=limit))
            for name, limit in (("a", 13), ("b", 13), ("c", max_tokens))
        ]
        world.driver.run()
        world.check_lone(*requests)
        world.check_empty()


@pytest.mark.parametrize("depth", [1, *DEPTHS])
@pytest.mark.parametrize("seed", range(5))
def test_aborts_in_random_order_during_preemption_leave_nothing_behind(depth: int, seed: int) -> None:
    rng = random.Random(seed)
    world = make_world(max_steps_in_flight=depth, num_blocks=9, max_num_batched_tokens=32, max_num_seqs=4)
    names = [world.add(request(f"r{idx}", prompt=4, max_tokens=13)).request_id for idx in range(6)]
    rng.shuffle(names)
    while names:
        fill_the_queue(world)
        world.driver.abort(names.pop())
        if world.driver.num_in_flight:
            world.driver.collect()
    world.driver.run()
    world.check_empty()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("budget", [4, 5, 16])
def test_chunks_and_concurrency_do_not_disturb_each_other(depth: int, budget: int) -> None:
    world = make_world(max_steps_in_flight=depth, max_num_batched_tokens=budget)
    requests = [
        world.add(request(name, prompt=length, max_tokens=7)) for name, length in (("a", 3), ("b", 21), ("c", 9))
    ]
    world.driver.run()
    world.check_lone(*requests)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_request_left_out_of_a_step_near_its_end_is_taken_up_again(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth, max_num_batched_tokens=4, max_num_seqs=4)
    requests = [world.add(request(f"r{idx}", prompt=1 + idx, max_tokens=3 + idx)) for idx in range(7)]
    world.driver.run()
    world.check_lone(*requests)
    for new in requests:
        assert world.reason(new.request_id) == "length"


@pytest.mark.parametrize("when", ["finish", "abort", "abort in prefill", "preempt"])
@pytest.mark.parametrize("groups", [hybrid(5), hybrid(3, num_windows=2)])
def test_blocks_freed_under_steps_in_flight_are_reused_at_once_without_harm(when: str, groups: tuple) -> None:
    world = make_world(max_steps_in_flight=3, num_blocks=16, groups=groups, max_num_batched_tokens=8, max_num_seqs=2)
    eos = world.lone(request("a", prompt=9, max_tokens=6)).token_ids[2]
    first = request("a", prompt=9, max_tokens=6, eos_token_ids=(eos,) if when == "finish" else ())
    world.add(first)
    others: list[NewRequest] = []
    for idx in range(4):
        others.append(world.add(request(f"b{idx}", prompt=9, max_tokens=9)))
    fill_the_queue(world)
    if when == "abort in prefill":
        world.driver.abort("a")
    world.driver.collect()
    fill_the_queue(world)
    if when == "abort":
        world.driver.abort("a")
    world.driver.run()
    world.check_lone(*others)
    world.check_empty()


def test_two_requests_of_one_step_share_a_prefix_that_is_not_computed_yet() -> None:
    world = make_world(max_num_batched_tokens=32)
    stem = list(range(8))
    requests = [world.add(request(name, prompt=[*stem, tail, tail])) for name, tail in (("a", 50), ("b", 60))]
    plan = world.driver.plan()
    assert plan is not None
    assert plan.num_tokens == [10, 2]
    world.driver.run()
    world.check_lone(*requests)


def test_a_request_shares_a_prefix_that_a_step_in_flight_computes() -> None:
    world = make_world(max_steps_in_flight=2)
    stem = list(range(8))
    first = world.add(request("a", prompt=[*stem, 50]))
    world.driver.plan()
    second = world.add(request("b", prompt=[*stem, 60]))
    plan = world.driver.plan()
    assert plan is not None
    assert plan.num_tokens == [1, 1]
    world.driver.run()
    world.check_lone(first, second)


@pytest.mark.parametrize("how", ["abort", "fail"])
def test_sharing_with_a_step_in_flight_survives_the_loss_of_its_owner(how: str) -> None:
    world = make_world(max_steps_in_flight=2)
    stem = list(range(8))
    world.add(request("a", prompt=[*stem, 50]))
    world.driver.plan()
    second = world.add(request("b", prompt=[*stem, 60]))
    world.driver.plan()
    if how == "abort":
        world.driver.abort("a")
    else:
        world.driver.fail()
    third = world.add(request("c", prompt=[*stem, 70]))
    world.driver.run()
    world.check_lone(second, third)
    world.check_empty()


@pytest.mark.parametrize("is_aborted", [False, True])
@pytest.mark.parametrize("is_same_step", [False, True])
def test_who_shares_blocks_that_a_failed_row_did_not_fill_computes_again(is_same_step: bool, is_aborted: bool) -> None:
    world = make_world(max_steps_in_flight=2, max_num_batched_tokens=32)
    stem = list(range(8))
    world.add(request("a", prompt=[*stem, 50]))
    plans = [] if is_same_step else [world.scheduler.schedule(0.0)]
    sharer = world.add(request("b", prompt=[*stem, 60]))
    plans.append(world.scheduler.schedule(0.0))
    assert plans[-1] is not None
    assert plans[-1].num_tokens == ([9, 1] if is_same_step else [1, 1])
    if is_aborted:
        world.driver.abort("a")
    for index, plan in enumerate(plans):
        assert plan is not None
        result = world.model.execute(plan, spoiled=[plan.rows[0]] if index == 0 else ())
        if index == 0:
            result = msgspec.structs.replace(result, token_ids=[[], *result.token_ids[1:]], failed={0: NOT_COMPUTED})
        world.driver.take(world.scheduler.update(result, 0.0))
        world.scheduler.check_integrity()
    later = world.add(request("c", prompt=[*stem, 70]))
    world.driver.run()
    assert world.reason("a") == ("abort" if is_aborted else "error")
    world.check_lone(sharer, later)
    world.check_empty()


def test_a_sample_made_from_blocks_of_a_failed_row_is_dropped_though_its_request_was_preempted_since() -> None:
    world = make_world(num_blocks=6, block_size=1, max_steps_in_flight=3)
    world.add(request("a", prompt=[1, 2, 3], max_tokens=3))
    sharer = world.add(request("b", prompt=[1, 2, 4], max_tokens=2))
    plans = [world.scheduler.schedule(0.0) for _ in range(3)]
    assert [len(plan.rows) for plan in plans if plan is not None] == [2, 1, 1]
    assert world.scheduler.stats().num_preemptions == 1
    for index, plan in enumerate(plans):
        assert plan is not None
        result = world.model.execute(plan, spoiled=[plan.rows[0]] if index == 0 else ())
        if index == 0:
            result = msgspec.structs.replace(result, token_ids=[[], result.token_ids[1]], failed={0: NOT_COMPUTED})
        world.driver.take(world.scheduler.update(result, 0.0))
    world.driver.run()
    world.check_lone(sharer)
    world.check_empty()


@pytest.mark.parametrize("depth", [1, *DEPTHS])
def test_the_next_turn_of_a_conversation_finds_the_answer_in_the_prefix_cache(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    first = world.add(request("first", prompt=9, max_tokens=8))
    world.driver.run()
    prompt = [*first.prompt_token_ids, *world.text("first"), 7, 7, 7]
    second = world.add(request("second", prompt=prompt))
    world.driver.run()
    world.check_lone(second)
    assert world.driver.outcomes["second"].deltas[-1].num_cached_tokens == 16


@pytest.mark.parametrize("depth", [1, *DEPTHS])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 4, 5, 6])
def test_a_reset_at_any_moment_changes_no_text(depth: int, num_steps: int) -> None:
    world = make_world(max_steps_in_flight=depth, max_num_batched_tokens=6)
    requests = [world.add(request(name, prompt=9, max_tokens=6)) for name in "ab"]
    for _ in range(num_steps):
        world.driver.step()
    fill_the_queue(world)
    assert world.scheduler.reset_prefix_cache(reset_running=True)
    world.driver.run()
    world.check_lone(*requests)
    world.check_empty()
