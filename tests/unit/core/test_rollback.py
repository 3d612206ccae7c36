"""Who computes again: after a failed row, failed steps, a reset. Preemptions: test_planning.py."""

from __future__ import annotations

import pytest
from fakes.scheduling import end_of, make_world, next_result, request

from octavo.proto.failure import Failure, FailureKind


@pytest.mark.parametrize(("kind", "num_faults"), [("internal", 1), ("numeric", 0), ("request", 0)])
def test_a_row_that_failed_ends_its_request_and_publishes_nothing(kind: FailureKind, num_faults: int) -> None:
    world = make_world()
    prompt = list(range(12))
    world.add(request("bad", prompt=prompt))
    good = world.add(request("good"))
    failure = Failure(kind, "non-finite logit")
    result = next_result(world, failed={0: failure})
    world.driver.take(world.scheduler.update(result, 0.0))
    assert end_of(world, "bad").error == failure
    assert world.scheduler.stats().num_faults == num_faults
    world.driver.run()
    world.check_lone(good)
    world.add(request("same", prompt=prompt))
    world.driver.run()
    assert end_of(world, "same").num_cached_tokens == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_after_a_failed_step_its_requests_compute_again(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    requests = [world.add(request(name, prompt=9, max_tokens=6)) for name in "ab"]
    for _ in range(2):
        world.driver.step()
    while world.driver.plan() is not None:
        pass
    world.driver.fail()
    world.driver.run()
    world.check_lone(*requests)
    world.check_empty()


def test_results_of_a_dead_epoch_change_nothing() -> None:
    world = make_world(max_steps_in_flight=2)
    new = world.add(request(prompt=20))
    plan = world.scheduler.schedule(0.0)
    assert plan is not None
    late = world.model.execute(plan)
    world.scheduler.fail_step(plan, Failure("internal", "planted"))
    assert world.scheduler.update(late, 0.0) == []
    world.scheduler.fail_step(plan, Failure("internal", "planted"))
    assert world.scheduler.stats().num_failed_steps == 1
    world.driver.run()
    world.check_lone(new)


def test_a_request_in_two_failed_steps_in_a_row_ends_with_the_error() -> None:
    world = make_world()
    world.add(request("bad"))
    for _ in range(2):
        world.driver.plan()
        world.driver.fail("the device is gone")
    assert end_of(world, "bad").error == Failure("internal", "the device is gone")
    world.check_empty()


def test_a_good_step_between_two_failed_ones_clears_a_request() -> None:
    world = make_world()
    new = world.add(request())
    for _ in range(3):
        world.driver.step()
        if world.driver.plan() is not None:
            world.driver.fail()
    world.driver.run()
    world.check_lone(new)


def test_a_failed_step_leaves_nothing_in_the_prefix_cache() -> None:
    world = make_world()
    world.add(request("bad", prompt=list(range(12))))
    world.driver.plan()
    world.driver.fail()
    world.driver.abort("bad")
    world.add(request("same", prompt=list(range(12))))
    world.driver.run()
    assert end_of(world, "same").num_cached_tokens == 0


def test_after_a_failed_step_the_next_plan_names_every_free_row() -> None:
    world = make_world(max_num_seqs=3)
    world.add(request("a"))
    world.add(request("b"))
    world.driver.plan()
    world.driver.fail()
    plan = world.driver.plan()
    assert plan is not None
    assert sorted(plan.freed_rows) == [0, 1, 2]


# Resets.


def test_the_prefix_cache_cannot_be_reset_while_requests_run() -> None:
    world = make_world()
    world.add(request())
    world.driver.step()
    assert not world.scheduler.reset_prefix_cache()
    world.driver.run()
    assert world.scheduler.reset_prefix_cache()


@pytest.mark.parametrize("depth", [1, 3])
def test_a_reset_makes_running_requests_compute_again_at_once(depth: int) -> None:
    world = make_world(max_steps_in_flight=depth)
    requests = [world.add(request(name, prompt=9, max_tokens=8)) for name in "ab"]
    for _ in range(3):
        world.driver.step()
    if depth > 1:
        world.driver.plan()
    assert world.scheduler.reset_prefix_cache(reset_running=True)
    if world.driver.num_in_flight == depth:
        world.driver.collect()
    plan = world.driver.plan()
    assert plan is not None
    assert [sequence.request_id for sequence in plan.new] == ["a", "b"]
    world.driver.run()
    world.check_lone(*requests)
